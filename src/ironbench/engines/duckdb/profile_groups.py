"""Activities of DuckDB in profiles. An activity is recognised by the names of functions (DuckDB 1.0 to 1.4). The
expressions match demangled and mangled names."""

from __future__ import annotations

from ironbench.engines.library import IDLE_THREADS
from ironbench.model.profile import WAITING_FOR_WORK

GROUPS = {
    **IDLE_THREADS,
    r".*FileSystem.*FileSync.*|(__GI_)?f(data)?sync": "sync to disk",
    r".*Executor.*(WaitForTask|RescheduleTask|UnregisterTask).*": "waits for parallel tasks",
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
    r".*(ScheduleTasks|ScheduleTask|EnqueueTask).*": "task scheduling",
    # A worker thread without a task waits for a semaphore. All tasks of worker threads are called by `ExecuteForever`.
    r".*LightweightSemaphore.*|__new_sem_wait.*|.*TaskScheduler.*ExecuteForever.*": WAITING_FOR_WORK,
}
