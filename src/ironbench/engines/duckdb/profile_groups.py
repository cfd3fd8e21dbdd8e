"""Activities of DuckDB in profiles. An activity is recognised by the names of functions (DuckDB 1.0 to 1.4). The
expressions match demangled and mangled names."""

from __future__ import annotations

from ironbench.model.profile import WAITING_FOR_WORK

GROUPS = {
    r".*(TaskScheduler.*(ExecuteForever|GetTaskFromProducer)|LightweightSemaphore).*wait.*": WAITING_FOR_WORK,
    r".*(TemporaryFile|TemporaryDirectory|EvictBlocks|WriteTemporaryBuffer|ReadTemporaryBuffer).*": "temporary files",
    r".*(WriteAheadLog|WALWriteState).*": "WAL",
    r".*(CheckpointManager|SingleFileCheckpoint|TableDataWriter|PartialBlockManager).*": "checkpoint",
    r".*(SingleFileBlockManager|FileSystem.*Read|BlockHandle.*Load|BufferManager).*": "data reads and buffers",
    r".*(Decompress|BitpackingScan|RLEScan|FSSTScan|AlpScan|DictionaryScan|FetchRow|ColumnSegment|ColumnData|RowGroup)"
    r".*": "column scans",
    r".*(JoinHashTable|HashJoin|PerfectHashJoin|Probe).*": "hash joins",
    r".*(RadixPartitionedHashTable|GroupedAggregateHashTable|HashAggregate|UngroupedAggregate).*": "aggregation",
    r".*(Sort|MergeSorter|TopN|RadixSort).*": "sorting",
    r".*(PhysicalWindow|WindowExecutor).*": "window functions",
    r".*(TupleDataCollection|RowOperations|TupleDataAllocator).*": "row layout",
    r".*(ExpressionExecutor|UnaryExecutor|BinaryExecutor|TernaryExecutor|VectorOperations).*": "expressions",
    r".*(Planner|Binder|Optimizer|JoinOrder|StatisticsPropagator).*": "planning",
    r".*(Parser|Transformer|base_yyparse).*": "parsing",
    r".*(DuckTransaction|CommitState|UndoBuffer|LocalStorage).*": "transactions",
    r".*(je_|malloc|Allocator|operator new|_Znwm).*": "memory allocation",
    r".*(PipelineExecutor|PipelineTask|ExecutorTask).*": "executor",
}
