"""What is known of the databases behind the drivers, by the name that each gives itself (SQLGetInfo, SQL_DBMS_NAME)."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench.engines.dialect import Dialect
from ironbench.engines.odbc.dialects import Db2Dialect, OracleDialect, SqlServerDialect


@dataclass(frozen=True, slots=True)
class DatabaseKind:
    """One database, as its drivers want to be used."""

    title: str
    """As its makers write its name."""
    products: tuple[str, ...]
    """How names that its drivers give it begin."""
    tried: bool = False
    """Whether a server of it has ever run under our tests."""
    texts: tuple[str, ...] = ()
    """Suffixes of the SQL texts, where no other engine knows this database."""
    insertion: str = "each"
    """How rows get in: `arrays` of parameters (SQLBindParameter with arrays), `rows` (many in one statement) or `each`
    (one after the other, prepared: all that some drivers can)."""
    most_parameters: int = 16_000
    """Of one statement."""
    calls: bool = False
    """Whether transactions begin and end by ODBC's calls, since there is no statement, or not these, for it."""
    splits: bool = True
    """Whether several statements are sent one after the other, because its driver takes one at a time."""
    backslashes: bool = False
    """Whether a backslash in a string stands before a character that is meant as it is."""
    inside: bool = False
    """Whether its driver is the database, too: client and engine cannot be told apart."""
    own: tuple[str, ...] = ()
    """Statements at the start of a connection for ironbench's own statements, which are standard SQL."""
    retryable: tuple[str, ...] = ()
    """SQLSTATEs after which a transaction may succeed when it is run again; 40001 always is one."""
    retryable_numbers: tuple[int, ...] = ()
    """The same by the database's own numbers."""
    checkpoints: bool = True
    """Whether the dialect's statement for a checkpoint is meant for servers of others, too."""
    version: str = ""
    """A query of its own for the exact version; "": what the driver says."""
    settings: str = ""
    """A query for names and values of its settings."""
    dialect: Dialect | None = None
    """Where no other engine knows this database."""
    one_row: str = ""
    """A table of one row, where every query has to read one."""


KINDS = (
    DatabaseKind(
        "PostgreSQL",
        ("PostgreSQL",),
        tried=True,
        insertion="rows",
        splits=False,
        retryable=("40P01",),
        version="select version()",
        settings=(
            "select name, setting from pg_settings where name not in ('archive_cleanup_command', 'archive_command', "
            "'primary_conninfo', 'recovery_end_command', 'restore_command', 'ssl_passphrase_command') order by name"
        ),
    ),
    DatabaseKind(
        "MariaDB",
        ("MariaDB", "MySQL"),
        tried=True,
        insertion="arrays",
        backslashes=True,
        own=("set session sql_mode = concat(@@sql_mode, ',ANSI_QUOTES,PIPES_AS_CONCAT')",),
        retryable_numbers=(1205, 1213),
        checkpoints=False,
        version="select version()",
        settings="show global variables",
    ),
    DatabaseKind(
        "SQLite",
        ("SQLite",),
        tried=True,
        inside=True,
        retryable_numbers=(5, 6),  # SQLITE_BUSY, SQLITE_LOCKED
        version="select sqlite_version()",
        settings=(
            "select 'journal_mode', journal_mode from pragma_journal_mode union all "
            "select 'synchronous', synchronous from pragma_synchronous union all "
            "select 'page_size', page_size from pragma_page_size union all "
            "select 'cache_size', cache_size from pragma_cache_size"
        ),
    ),
    DatabaseKind(
        "SQL Server",
        ("Microsoft SQL",),
        texts=("sqlserver",),
        insertion="arrays",
        calls=True,
        splits=False,
        retryable_numbers=(1205,),  # deadlock victim
        version="select @@version",
        settings="select name, cast(value_in_use as varchar(200)) from sys.configurations order by name",
        dialect=SqlServerDialect(),
    ),
    DatabaseKind(
        "Oracle",
        ("Oracle",),
        texts=("oracle",),
        insertion="arrays",
        calls=True,
        splits=False,
        retryable_numbers=(60, 8177),  # ORA-00060 deadlock, ORA-08177 cannot serialize
        settings="select name, value from v$parameter order by name",
        dialect=OracleDialect(),
        one_row="dual",
    ),
    DatabaseKind(
        "Db2",
        ("DB2",),
        texts=("db2",),
        insertion="arrays",
        calls=True,
        retryable=("57033",),
        settings="select name, value from sysibmadm.dbcfg order by name",
        dialect=Db2Dialect(),
        one_row="sysibm.sysdummy1",
    ),
    DatabaseKind(
        "another database",
        (),
    ),
)
OTHER = KINDS[-1]


def of(product: str) -> DatabaseKind:
    """The database of a driver that names it so."""
    known = (kind for kind in KINDS if any(product.lower().startswith(name.lower()) for name in kind.products))
    return next(known, OTHER)
