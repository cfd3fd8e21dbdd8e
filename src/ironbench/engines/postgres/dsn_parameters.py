"""Parameters of PostgreSQL's connection strings: those that ironbench uses, accepts or refuses.

https://www.postgresql.org/docs/18/libpq-connect.html#LIBPQ-PARAMKEYWORDS
"""

from __future__ import annotations

VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "dbname": "PGDATABASE",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslcertmode": "PGSSLCERTMODE",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "sslsni": "PGSSLSNI",
    "channel_binding": "PGCHANNELBINDING",
    "require_auth": "PGREQUIREAUTH",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "application_name": "PGAPPNAME",
    "options": "PGOPTIONS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "service": "PGSERVICE",
}
"""For each parameter that ironbench uses, the environment variable that contains its default."""
TAKEN: dict[str, tuple[str, ...]] = {
    "client_encoding": ("auto", "UTF8", "UTF-8", "utf8", "utf-8", "unicode", "UNICODE"),
    "connect_timeout": (),
    "fallback_application_name": (),
    "gssencmode": ("disable", "prefer"),
    "gssdelegation": ("0",),
    "keepalives": (),
    "keepalives_count": (),
    "keepalives_idle": (),
    "keepalives_interval": (),
    "load_balance_hosts": ("disable",),
    "servicefile": (),
    "sslcertmode": ("disable", "allow"),
    "sslcompression": ("0",),
    "ssl_max_protocol_version": ("TLSv1.3",),
    "ssl_min_protocol_version": ("TLSv1", "TLSv1.1", "TLSv1.2"),
    "sslnegotiation": ("postgres", "direct"),
    "sslsni": ("0", "1"),
    "channel_binding": ("disable", "prefer", "require"),
    "target_session_attrs": ("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
    "tcp_user_timeout": (),
}
"""Parameters of libpq that are accepted only with certain values. An empty tuple accepts all values. ironbench
implements the accepted values, or they make no difference to it."""
REFUSED = frozenset(
    {
        "gsslib",
        "krbsrvname",
        "max_protocol_version",
        "min_protocol_version",
        "oauth_client_id",
        "oauth_client_secret",
        "oauth_issuer",
        "oauth_scope",
        "replication",
        "requirepeer",
        "requiressl",
        "scram_client_key",
        "scram_server_key",
        "sslcrl",
        "sslcrldir",
        "sslkeylogfile",
        "sslpassword",
    }
)
"""Parameters of libpq that ironbench does not implement."""
FOREIGN = {
    "connection_limit": "Prisma",
    "pgbouncer": "Prisma",
    "pool_timeout": "Prisma",
    "schema": "Prisma",
    "socket_timeout": "Prisma",
    "sslaccept": "Prisma",
    "statement_cache_size": "Prisma",
    "applicationname": "JDBC",
    "currentschema": "JDBC",
    "logintimeout": "JDBC",
    "preparethreshold": "JDBC",
    "rewritebatchedinserts": "JDBC",
    "sslfactory": "JDBC",
    "tcpkeepalive": "JDBC",
    "async_fallback": "SQLAlchemy",
    "command_timeout": "asyncpg",
    "prepared_statement_cache_size": "SQLAlchemy",
    "encoding": "Rails",
    "pool": "Rails",
    "pool_max_conns": "pgx",
    "pool_min_conns": "pgx",
}
"""Maps parameters of other programs' connection strings to the programs. The names of the parameters are in lower case.
These names cannot be part of a password, so messages may quote them."""
