"""Activities of PostgreSQL in profiles. An activity is recognised by the names of functions.

The names are from the sources of PostgreSQL 13 to 18. The order of the expressions matters. For example, a lock for
inserting a WAL record counts as WAL insertion, and only the remaining lightweight locks count as LWLocks. PostgreSQL
uses semaphores only for lightweight locks, and fdatasync only for WAL.
"""

from __future__ import annotations

from ironbench.model.observer import CLIENT, DATA_READ, DATA_WRITE, INTERNAL_LOCKS, LOCKS, LOG_FLUSH, TEMP
from ironbench.model.profile import WAITING_FOR_WORK

GROUPS = {
    # ironbench's own session requests checkpoints. Transactions do not wait for the end of a checkpoint.
    r"secure_read|CheckpointWriteDelay|RequestCheckpoint": WAITING_FOR_WORK,
    r"XLogCompressBackupBlock|.*pglz_compress": "WAL compression",
    r"XLogInsert.*|XLogRecordAssemble|ReserveXLogInsertLocation|CopyXLogRecordToWAL|WALInsertLock.*|"
    r"AdvanceXLInsertBuffer|GetXLogBuffer": "WAL insertion",
    r"XLogFlush|XLogWrite|XLogBackgroundFlush|WaitXLogInsertionsToFinish|issue_xlog_fsync|SyncRepWait.*": "WAL flush",
    r"pg_(try_)?advisory_.*": "advisory locks",
    r"ProcSleep|WaitOnLock|XactLockTableWait|heap_acquire_tuplock|MultiXactIdWait.*|DeadLockCheck.*|"
    r"LockAcquire.*|LockRelease.*|LockBufferForCleanup": "row and table locks",
    r"(heap|lazy)_vacuum.*|vacuum_rel|lazy_scan_.*|heap_page_prune.*": "vacuum and pruning",
    r"WaitReadBuffers|AsyncReadBuffers|mdread.*|mdprefetch|FileRead.*|pgaio_.*": "data reads",
    r"FlushBuffer|BufferSync|SyncOneBuffer|mdwrite.*|mdextend|mdzeroextend|ProcessSyncRequests|FileWrite.*|"
    r"RequestXLogSwitch": "data writes",
    r"BufFile.*|LogicalTape.*|dumptuples": "temporary files",
    r"_bt_.*|bt(insert|gettuple|getbitmap|rescan|beginscan|endscan)|index_.*|_hash_.*|gi(n|st).*": "index access",
    r"tuplesort_.*|qsort_.*|comparetup_.*": "sorting",
    r"ExecHash.*|MultiExecHash|BuildTupleHashTable.*|LookupTupleHashEntry.*": "hash tables",
    r"pg_reg(exec|comp)|RE_compile.*|RE_exec.*|setup_regexp_matches|replace_text_regexp": "regular expressions",
    r"ExecEvalStep.*|ExecInterpExpr|ExecJustInner.*|ExecEval.*|ExecProject.*|ExecQual": "expressions",
    r"pg_plan_quer.*|planner|standard_planner|BuildCachedPlan|GetCachedPlan": "planning",
    r"pg_parse_query|pg_analyze_and_rewrite.*|parse_analyze.*|raw_parser|base_yyparse": "parsing",
    r"heap_(insert|update|delete|lock_tuple|multi_insert).*|heapam_tuple_.*": "changes of tables",
    r"heap_(getnext|fetch|hot_search).*|heapgettup.*|heapam_.*|table_.*": "table access",
    r"ReadBuffer.*|PinBuffer.*|UnpinBuffer.*|BufferAlloc|StartReadBuffer.*|hash_search_with_hash_value": "buffer cache",
    r"GetSnapshotData.*|GetTransactionSnapshot|HeapTupleSatisfies.*|XidInMVCCSnapshot|SlruSelect.*|TransactionIdIs.*|"
    r"SimpleLru.*|ProcArray.*": "snapshots and visibility",
    r"LWLock.*|perform_spin_delay|s_lock": "LWLocks",
    r"CommitTransaction.*|RecordTransactionCommit|StartTransaction.*|AbortTransaction.*": "transaction control",
    r"printtup.*|pq_.*|secure_.*|internal_(flush|putbytes).*|socket_.*|SendRowDescription.*": "client communication",
    r"palloc.*|AllocSet.*|MemoryContext.*|pfree|repalloc": "memory allocation",
    r"ExecutorRun|standard_ExecutorRun|ExecutorStart|ExecProcNode.*|PortalRun.*": "executor",
    # If the callers in a stack are unknown, a function of the C library determines the activity.
    r"(__libc_|__GI_)?(send|recv)": "client communication",
    r"(__GI_)?fdatasync": "WAL flush",
    r"(__GI_)?fsync": "data writes",
    r"__new_sem_.*|sem_(wait|post)|__futex_abstimed_wait.*": "LWLocks",
    # Backends are child processes of the postmaster, so the stacks of a backend can also contain `ServerLoop`.
    r"BackendMain|PostgresMain": "other work of backends",
    r"(Checkpointer|WalWriter|BackgroundWriter|AutoVacLauncher|ApplyLauncher|PgArchiver|IoWorker|Logger|Startup)"
    r"(Process)?Main|PgArchiver_MainLoop|SysLoggerMain|ServerLoop": WAITING_FOR_WORK,
    r"epoll_wait": "waits for the client or for locks",
}

WAITS = {
    "WAL insertion": LOG_FLUSH,
    "WAL flush": LOG_FLUSH,
    "advisory locks": LOCKS,
    "row and table locks": LOCKS,
    "data reads": DATA_READ,
    "data writes": DATA_WRITE,
    "temporary files": TEMP,
    "buffer cache": INTERNAL_LOCKS,
    "snapshots and visibility": INTERNAL_LOCKS,
    "LWLocks": INTERNAL_LOCKS,
    "client communication": CLIENT,
}
"""Wait class of a wait during each activity."""
