"""Activities of OpenLDAP's slapd in profiles. An activity is recognised by the names of functions (OpenLDAP 2.5 and
2.6)."""

from __future__ import annotations

from ironbench.model.profile import WAITING_FOR_WORK

GROUPS = {
    r"slapd_daemon_task|ldap_pvt_thread_pool_wrapper_wait|ldap_int_thread_pool_wait": WAITING_FOR_WORK,
    r"mdb_env_sync.*|mdb_fdatasync|mdb_msync": "sync to disk",
    r"mdb_txn_commit|mdb_page_flush|mdb_env_write_meta|mdb_freelist_save": "commit",
    r"mdb_txn_(begin|renew).*|mdb_mutex_.*|pthread_mutex_lock": "write lock",
    r"mdb_page_.*|mdb_node_.*|mdb_cursor_(put|del).*|mdb_put|mdb_del|mdb_ovpage_.*": "changes of pages",
    r"mdb_cursor_.*|mdb_get.*|mdb_cmp_.*|mdb_set_key.*": "B-tree access",
    r"mdb_(filter_candidates|idl_.*|key_read|index_.*|dn2id.*|id2entry.*|entry_.*|search.*)": "back-mdb",
    r"lutil_passwd.*|lutil_.*hash.*|chk_.*|EVP_.*|SHA\d*_.*": "password check",
    r"acl_.*|access_allowed.*|slap_access.*": "access control",
    r"test_filter.*|test_ava_filter|value_match|.*Match|.*Normalize|dnPretty.*|dnNormalize.*|dnX509.*": "filters and "
    "matching rules",
    r"ber_.*|lber_.*|sb_.*|send_ldap.*|slap_send_.*|connection_(read|input|write|operation).*": "client communication",
    r"do_(search|modify|add|bind|compare|delete|modrdn)|fe_op_.*|overlay_.*|op_.*": "operation",
    r"ch_(malloc|calloc|realloc|free)|slap_sl_.*|malloc|free|calloc": "memory allocation",
    r"slapd_daemon|ldap_pvt_thread_pool_.*|ldap_int_thread_pool_.*": WAITING_FOR_WORK,
}
