"""Activities of MariaDB in profiles. An activity is recognised by the names of functions (MariaDB 10.11 to 11.8). The
expressions match demangled and mangled names."""

from __future__ import annotations

from ironbench.model.observer import CLIENT, DATA_READ, DATA_WRITE, INTERNAL_LOCKS, LOCKS, LOG_FLUSH
from ironbench.model.profile import WAITING_FOR_WORK

GROUPS = {
    r".*(vio_io_wait|my_net_read_packet|net_read_packet|threadpool_.*get_event|io_poll_wait).*": WAITING_FOR_WORK,
    r".*(log_write_up_to|log_t::write_buf|log_t::flush|fil_flush_redo|group_commit_lock).*": "redo log flush",
    r".*(log_t::append|mtr_t::finish_write|mtr_t::commit|log_reserve|mtr_t::do_write).*": "redo log records",
    r".*(MYSQL_BIN_LOG|trx_group_write_binlog|binlog_).*": "binary log",
    # Locks of GET_LOCK are metadata locks (sql/item_func.cc), so their functions come first.
    r".*Item_func_(get_lock|release_(all_)?locks?|is_(free|used)_lock).*": "user locks (GET_LOCK)",
    r".*(MDL_context|MDL_lock|MDL_map|MDL_wait|MDL_ticket|mdl_).*": "metadata locks",
    r".*(lock_wait|lock_rec_|lock_table|lock_clust|lock_sec|lock_trx).*": "row and table locks",
    r".*(srw_mutex|ssux_lock|rw_lock|sux_lock|pthread_mutex|futex_wait|my_rw_|TTASEventMutex).*": "latches and mutexes",
    r".*(purge_|trx_purge|row_purge|srv_purge).*": "purge",
    r".*(buf_read_|buf_page_get_low|os_file_read|fil_io_|fil_space_t::io).*": "data reads",
    r".*(buf_flush_|buf_do_flush|buf_dblwr|os_file_write|os_file_flush|log_checkpoint).*": "data writes",
    r".*(buf_page_get|buf_LRU|buf_pool|buf_block).*": "buffer pool",
    r".*(btr_cur_|btr_pcur|page_cur_|btr_insert|ha_innobase::index_).*": "index access",
    r".*(row_ins|row_upd|trx_undo|ha_innobase::(write|update|delete)_row).*": "changes of tables",
    r".*(row_search_|row_sel|ha_innobase::(rnd|general_fetch)).*": "table access",
    r".*(trx_commit|trx_start|trx_sys|ha_commit|ReadView|innobase_commit).*": "transaction control",
    r".*(filesort|Unique::|merge_buffers).*": "sorting",
    r".*(JOIN::optimize|make_join_plan|choose_plan|best_access_path).*": "planning",
    r".*(MYSQLparse|parse_sql|lex_one_token|mysql_parse|Prepared_statement::prepare).*": "parsing",
    r".*(Protocol|net_send|net_write|net_flush|my_net_write|net_real_write).*": "client communication",
    r".*(my_malloc|mem_heap|alloc_root|operator new|_Znwm|jemalloc|tcmalloc).*": "memory allocation",
    r".*(JOIN::exec|sub_select|evaluate_join_record|mysql_execute_command|Item_).*": "executor",
    r".*(srv_master|srv_monitor|srv_error_monitor|buf_flush_page_cleaner|timer_handler|thread_pool::|tpool::|"
    r"handle_slave|ma_checkpoint|signal_hand).*": WAITING_FOR_WORK,
}

WAITS = {
    "redo log flush": LOG_FLUSH,
    "redo log records": LOG_FLUSH,
    "binary log": LOG_FLUSH,
    "user locks (GET_LOCK)": LOCKS,
    "metadata locks": LOCKS,
    "row and table locks": LOCKS,
    "latches and mutexes": INTERNAL_LOCKS,
    "data reads": DATA_READ,
    "data writes": DATA_WRITE,
    "client communication": CLIENT,
}
"""Wait class of a wait during each activity."""
