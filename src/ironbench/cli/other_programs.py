"""The options of pgbench, sysbench and HammerDB, and ours for the same purpose: for hints and for the reference page.

Sources: the manual page of pgbench 18, `sysbench --help` and `sysbench oltp_read_write help` of version 1.0.20.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ironbench.errors import shortened

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class OtherOption:
    """An option of another program."""

    names: tuple[str, ...]
    """As on the command line, without a value."""
    value: str = ""
    """Placeholder of its value; empty for a switch."""
    ours: str = ""
    """Words for `ironbench run`, with `{}` for the value; a workload if they do not begin with `-`. Empty: none."""
    remark: str = ""
    """What the reference page adds; if `ours` is empty, also the hint."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Its values → ours, if they differ."""

    def words(self, value: str) -> str:
        """Returns our words for this value of the option."""
        return self.ours.format(shlex.quote(shortened(self.values.get(value, value), _LONGEST)) or self.value)


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """Another program with its options."""

    name: str
    options: tuple[OtherOption, ...]
    workload: str
    """The workload that the program runs by default."""

    def option(self, name: str) -> OtherOption | None:
        """Returns the option; sysbench also accepts underscores in names."""
        return next((one for one in self.options if name.replace("_", "-") in one.names), None)


_POSTGRES = "--dsn postgresql://USER@HOST:PORT/DATABASE"
_MYSQL = "--dsn mysql://USER@HOST:PORT/DATABASE"
_LOADED = "not needed (ironbench loads the data before the first trial)"
_OWN_TABLES = "no counterpart (create your own tables with --setup FILE and run them with script)"
_WARMUP = "After a warm-up of 5 s; `--warmup 0s` for none."
_PASSWORD = "The password can also be in `PGPASSWORD`, `MYSQL_PWD` or a password file."

PGBENCH = OtherProgram(
    "pgbench",
    (
        OtherOption(("-b", "--builtin"), "NAME", "{}", "A workload: `tpcb-like`, `simple-update` or `select-only`."),
        OtherOption(("-S", "--select-only"), "", "select-only"),
        OtherOption(("-N", "--skip-some-updates"), "", "simple-update"),
        OtherOption(("-f", "--file"), "FILE", "script {}", "Also `FILE@WEIGHT`, and several files."),
        OtherOption(("-D", "--define"), "NAME=VALUE", "-D {}"),
        OtherOption(
            ("-s", "--scale"), "N", "--with scale={}", "For `script`: `-D scale=N`; pgbench counts the rows instead."
        ),
        OtherOption(("-c", "--client"), "N", "--clients {}", "`--clients 1,2,4,8` measures each number."),
        OtherOption(("-j", "--jobs"), "N", "--threads {}"),
        OtherOption(("-T", "--time"), "N", "--duration {}s", _WARMUP),
        OtherOption(("-t", "--transactions"), "N", "--transactions {}", "Per client, not counting the warm-up."),
        OtherOption(("-M", "--protocol"), "NAME", "--protocol {}"),
        OtherOption(("-R", "--rate"), "N", "--rate {}", "Random intervals in both; `--arrivals fixed` for equal ones."),
        OtherOption(
            ("-L", "--latency-limit"),
            "N",
            '--require "p99 < {}ms"',
            "Checks a percentile; late transactions are never skipped.",
        ),
        OtherOption(("-C", "--connect"), "", "--reconnect 1", "The response time does not include connecting."),
        OtherOption(("--max-tries",), "N", "--max-tries {}"),
        OtherOption(("--exit-on-abort",), "", "--on-error stop", "The default."),
        OtherOption(("--random-seed",), "N", "--seed {}", "Each trial derives its seed from this number."),
        OtherOption(("-P", "--progress"), "N", "--progress {}"),
        OtherOption(("-r", "--report-per-command"), "", "-r"),
        OtherOption(("-l", "--log"), "", "--log-transactions FILE", "One file for all threads."),
        OtherOption(("--log-prefix",), "PREFIX", "--log-transactions {}"),
        OtherOption(("--sampling-rate",), "N", "--sampling-rate {}"),
        OtherOption(("--aggregate-interval",), "N", "", "every record has figures per second"),
        OtherOption(("--failures-detailed",), "", "", "reports always contain failures and retries"),
        OtherOption(("--verbose-errors",), "", "", "a warning quotes the first error"),
        OtherOption(("--progress-timestamp",), "", "", "no counterpart"),
        OtherOption(("-i", "--initialize"), "", "", _LOADED),
        OtherOption(("-I", "--init-steps"), "STEPS", "", _LOADED),
        OtherOption(("-F", "--fillfactor"), "N", "--with fillfactor={}"),
        OtherOption(
            ("-n", "--no-vacuum"),
            "",
            "",
            "no counterpart (script runs no VACUUM; tpcb-like and simple-update vacuum their two small tables)",
        ),
        OtherOption(("-v", "--vacuum-all"), "", "", "no counterpart (to measure VACUUM, use the workload vacuum)"),
        OtherOption(("-q", "--quiet"), "", "", "no counterpart (results are on stdout, all else on stderr)"),
        OtherOption(("--unlogged-tables", "--foreign-keys"), "", "", _OWN_TABLES),
        OtherOption(("--tablespace", "--index-tablespace"), "NAME", "", _OWN_TABLES),
        OtherOption(("--partitions", "--partition-method"), "N", "", _OWN_TABLES),
        OtherOption(
            ("-h", "--host", "-p", "--port", "-U", "--username", "-d", "--dbname"), "VALUE", _POSTGRES, _PASSWORD
        ),
    ),
    "tpcb-like",
)
SYSBENCH = OtherProgram(
    "sysbench",
    (
        OtherOption(
            ("--threads", "--num-threads"),
            "N",
            "--clients {}",
            "ironbench's `--threads` are the threads that drive all clients, as with pgbench's `-j`.",
        ),
        OtherOption(("--time", "--max-time"), "N", "--duration {}s", _WARMUP),
        OtherOption(
            ("--events", "--max-requests"),
            "N",
            "--transactions {}",
            "Per client; in sysbench, of all threads together.",
        ),
        OtherOption(("--warmup-time",), "N", "--warmup {}s"),
        OtherOption(("--rate", "--tx-rate"), "N", "--rate {}"),
        OtherOption(("--rand-seed",), "N", "--seed {}"),
        OtherOption(("--report-interval",), "N", "--progress {}"),
        OtherOption(("--report-checkpoints",), "LIST", "", "every record has figures per second"),
        OtherOption(("--percentile",), "N", "", "reports always contain the usual percentiles"),
        OtherOption(("--histogram",), "", "", "every record contains the histograms"),
        OtherOption(("--validate",), "", "", "every workload checks its results"),
        OtherOption(("--forced-shutdown",), "N", "", "no counterpart (a timed trial ends on time)"),
        OtherOption(("--config-file",), "FILE", "", "declare the experiment in a lab file, see `ironbench lab new`"),
        OtherOption(("--verbosity", "--debug", "--db-debug", "--mysql-debug"), "N", "", "no counterpart"),
        OtherOption(
            ("--db-driver",),
            "NAME",
            "--engine {}",
            "`mysql` is `mariadb`, `pgsql` is `postgres`.",
            {"mysql": "mariadb", "pgsql": "postgres"},
        ),
        OtherOption(
            ("--db-ps-mode",),
            "MODE",
            "--protocol {}",
            "`auto` is `prepared`, `disable` is `simple`.",
            {"auto": "prepared", "disable": "simple"},
        ),
        OtherOption(
            tuple(f"--mysql-{name}" for name in ("host", "port", "user", "password", "db")), "VALUE", _MYSQL, _PASSWORD
        ),
        OtherOption(("--mysql-socket",), "FILE", "--dsn 'mysql://USER@/DATABASE?socket=FILE'"),
        OtherOption(("--mysql-ssl",), "", "--dsn 'mysql://USER@HOST/DATABASE?tls=require'"),
        OtherOption(("--mysql-ignore-errors",), "LIST", "--max-tries N", "Repeats transactions after a deadlock."),
        OtherOption(
            tuple(f"--pgsql-{name}" for name in ("host", "port", "user", "password", "db")),
            "VALUE",
            _POSTGRES,
            _PASSWORD,
        ),
    ),
    "script",
)
PROGRAMS = (PGBENCH, SYSBENCH)


def hint(words: Sequence[str], unknown: str, known: Mapping[str, str], command: str) -> str:
    """Returns our words for all options of another program in a command line; empty if `unknown` is no such option.

    words: the words after `ironbench`. known: name of each option of the command → name of its parameter. command: its
    full name.
    """
    programs = [one for one in PROGRAMS if one.option(unknown)]
    found = [_foreign(words, one, known) for one in programs]
    if not programs or (unknown == "-h" and not any(one.get("-h") for one in found)):  # a request for help
        return ""
    given = max(found, key=len)
    program = programs[found.index(given)]
    owners = [one.name for one, others in zip(programs, found, strict=True) if others.keys() == given.keys()]
    options = {name: option for name in given if (option := program.option(name))}
    ours = [option.words(given[name] or option.value) for name, option in options.items() if option.ours]
    parts = [f"here: {_command(ours, program, command)}"] if ours else []
    for remark in dict.fromkeys(option.remark for option in options.values() if not option.ours):
        named = ", ".join(name for name, option in options.items() if option.remark == remark)
        parts.append(f"{named}: {remark}" if len(given) > 1 else remark)
    kind = "is an option" if len(given) == 1 else "are options"
    return f"{', '.join(given)} {kind} of {' and '.join(owners)}; {'; '.join(parts)}"


def _foreign(words: Sequence[str], program: OtherProgram, known: Mapping[str, str]) -> dict[str, str]:
    """Returns the program's options in a command line with their values, without those that are the same here."""
    found: dict[str, str] = {}
    for name, value in _options(words, program):
        option = program.option(name)
        if option and (name not in known or known[name] != known.get(option.ours.partition(" ")[0])):
            found.setdefault(name, value)
    return found


def _options(words: Sequence[str], program: OtherProgram) -> Iterator[tuple[str, str]]:
    """Yields the options in a command line with their values, read as the other program would."""
    for word, following in pairwise([*words, ""]):
        if word == "--":
            return
        following = "" if following.startswith("-") else following
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            option = program.option(name)
            yield name, value if equals or not (option and option.value) else following
            continue
        rest = word[1:] if word.startswith("-") else ""
        while rest:
            name, rest = f"-{rest[0]}", rest[1:]
            option = program.option(name)
            if option and option.value:
                yield name, rest or following
                rest = ""
            else:
                yield name, ""


def _command(pieces: Sequence[str], program: OtherProgram, command: str) -> str:
    """Returns the options; the whole command if the workload belongs to it, or the word `run` is missing."""
    workloads = [one for one in pieces if not one.startswith("-")]
    options = list(dict.fromkeys(one for one in pieces if one.startswith("-")))
    if workloads or command == "ironbench":
        return " ".join(["ironbench run", *(workloads[-1:] or [program.workload]), *options])
    return " ".join(options)
