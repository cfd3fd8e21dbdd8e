"""Activities of OpenLDAP's slapd in profiles. An activity is recognised by the names of functions (OpenLDAP 2.5 and
2.6)."""

from __future__ import annotations

from ironbench.model.profile import WAITING_FOR_WORK

GROUPS = {
    r"mdb_env_sync.*|mdb_fdatasync|mdb_msync": "sync to disk",
    r"mdb_txn_commit|mdb_page_flush|mdb_env_write_meta|mdb_freelist_save": "commit",
    # The lock of LMDB's only writer is a robust mutex. No other mutex of slapd is robust.
    r"mdb_txn_(begin|renew).*|mdb_mutex_.*|_*pthread_mutex_lock_full": "write lock",
    r"_*v?syslog.*|slap_debug_print": "logging",
    r"mdb_page_.*|mdb_node_.*|mdb_cursor_(put|del).*|mdb_put|mdb_del|mdb_ovpage_.*": "changes of pages",
    r"mdb_cursor_.*|mdb_get.*|mdb_cmp_.*|mdb_set_key.*": "B-tree access",
    r"mdb_(filter_candidates|idl_.*|key_read|index_.*|dn2id.*|id2entry.*|entry_.*|search.*)": "back-mdb",
    r"lutil_passwd.*|lutil_.*hash.*|chk_.*|EVP_.*|SHA\d*_.*": "password check",
    r"acl_.*|access_allowed.*|slap_access.*": "access control",
    r"test_filter.*|test_ava_filter|value_match|.*Match|.*Normalize|dnPretty.*|dnNormalize.*|dnX509.*": "filters and "
    "matching rules",
    r"ldap_pvt_thread_pool_submit.*": "thread pool",
    r"ber_.*|lber_.*|sb_.*|send_ldap.*|slap_send_.*|connection_(read|input|write|operation).*": "client communication",
    r"do_(search|modify|add|bind|compare|delete|modrdn)|fe_op_.*|overlay_.*|op_.*": "operation",
    r"ch_(malloc|calloc|realloc|free)|slap_sl_.*|malloc|free|calloc": "memory allocation",
    # In slapd of Debian and Ubuntu, the functions of the thread pool have no names.
    r"_*(GI_+)?pthread_mutex_(cond_)?lock": "mutexes",
    r"_*(GI_+)?pthread_cond_(timed)?wait.*|epoll_wait|slapd_daemon.*|ldap_(pvt|int)_thread_pool_.*": WAITING_FOR_WORK,
}
