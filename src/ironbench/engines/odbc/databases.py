"""Properties of the databases behind ODBC drivers. A database is identified by the name that its driver reports
(SQLGetInfo, SQL_DBMS_NAME)."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench.engines.dialect import Dialect
from ironbench.engines.odbc.dialects import Db2Dialect, OracleDialect, SqlServerDialect


@dataclass(frozen=True, slots=True)
class DatabaseKind:
    """A database, and what its drivers require."""

    title: str
    """Official spelling of the database's name."""
    products: tuple[str, ...]
    """Prefixes of the names that the database's drivers report."""
    tried: bool = False
    """Whether ironbench's tests have ever run with a server of this kind."""
    texts: tuple[str, ...] = ()
    """Suffixes of the database's SQL files. The files are used only if ironbench has no other engine for this
    database."""
    insertion: str = "each"
    """Method of inserting rows. `arrays` sends arrays of parameters (SQLBindParameter). `rows` sends many rows in one
    statement. `each` sends each row with a prepared statement, because some drivers support nothing else."""
    max_parameters: int = 16_000
    """Maximum number of parameters in one statement."""
    calls: bool = False
    """Whether transactions begin and end with ODBC calls. This is necessary if the database has no statements for this,
    or has different ones."""
    splits: bool = True
    """Whether several statements are sent one by one, because the driver accepts only one statement per call."""
    backslashes: bool = False
    """Whether a backslash is the escape character in strings."""
    inside: bool = False
    """Whether the driver contains the database, so that client and engine share a process."""
    own: tuple[str, ...] = ()
    """Statements that prepare a connection for ironbench's own statements, which are in standard SQL."""
    retryable: tuple[str, ...] = ()
    """SQLSTATEs after which a transaction can be retried, in addition to 40001."""
    retryable_numbers: tuple[int, ...] = ()
    """Native error numbers after which a transaction can be retried."""
    checkpoints: bool = True
    """Whether the dialect's checkpoint statement also works on servers that ironbench did not start."""
    version: str = ""
    """Query for the exact version. If empty, the version that the driver reports is used."""
    settings: str = ""
    """Query for names and values of the database's settings."""
    dialect: Dialect | None = None
    """Dialect of the database. The dialect is used only if ironbench has no other engine for this database."""
    one_row: str = ""
    """Name of a table with one row, for databases in which every query needs FROM."""


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
        retryable_numbers=(5, 6),  # SQLITE_BUSY and SQLITE_LOCKED
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
        retryable_numbers=(60, 8177),  # ORA-00060: deadlock; ORA-08177: cannot serialize access
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
        "any other database",
        (),
    ),
)
OTHER = KINDS[-1]


def of(product: str) -> DatabaseKind:
    """Returns the database with this name reported by a driver."""
    known = (kind for kind in KINDS if any(product.lower().startswith(name.lower()) for name in kind.products))
    return next(known, OTHER)
