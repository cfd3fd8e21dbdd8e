"""Activities of SQLite in profiles. An activity is recognised by the names of functions (SQLite 3.40 to 3.50)."""

from __future__ import annotations

from ironbench.engines.library import IDLE_THREADS

GROUPS = {
    **IDLE_THREADS,
    # The core's busy handler sleeps between two attempts to lock the database.
    r"sqlite3(InvokeBusyHandler|OsSleep)|sqliteDefaultBusyCallback|unixSleep|ironbench_core::wire::sqlite::busy_handler"
    r"::.*": "lock waits",
    r"unixSync|full_fsync|sqlite3OsSync|walRestartLog|sqlite3PagerSync": "sync to disk",
    r"sqlite3WalCheckpoint|walCheckpoint|sqlite3PagerCheckpoint": "checkpoint",
    r"sqlite3WalFrames|walWriteOneFrame|walWriteToLog|walEncodeFrame|walChecksumBytes": "WAL writes",
    r"pager_write.*|sqlite3Pager(Write|CommitPhase.*)|writeJournal.*|unixWrite|seekAndWrite.*": "page writes",
    r"unixRead|seekAndRead|readDbPage|sqlite3WalReadFrame": "page reads",
    r"unix(Lock|Unlock|Shm.*|FileLock)|posixUnlock|walTryBeginRead|sqlite3WalBeginReadTransaction|"
    r"walLockShared": "file locks",
    r"pcache1.*|sqlite3Pcache.*|getPageNormal|sqlite3PagerGet.*|sqlite3PagerUnref.*": "page cache",
    r"balance.*|sqlite3Btree(Insert|Delete|CreateTable).*|insertCell.*|dropCell": "changes of tables",
    r"sqlite3Btree.*|btree.*|moveTo.*|sqlite3VdbeRecordCompare.*|vdbeRecordCompare.*": "B-tree access",
    r"vdbeSort.*|sqlite3VdbeSorter.*|vdbePma.*": "sorting",
    r"sqlite3(RunParser|Parser.*|GetToken|Select|WhereBegin|Prepare.*|LockAndPrepare)|yy_.*|whereLoop.*": "parsing and "
    "planning",
    r"sqlite3Vdbe(Serial|MemSet|MemGrow|Mem).*|sqlite3(Malloc|Free|DbMalloc|Realloc).*|mem1.*": "memory and values",
    r"sqlite3VdbeExec|sqlite3Step|sqlite3_step": "statement execution",
}
