"""Translates pgbench's command line into ironbench's, or explains why that is not possible."""

from __future__ import annotations

import getopt
from dataclasses import dataclass, field

from pgbench_cases.cases import Case

SHORT = "iI:h:nvp:dqb:SNc:j:Crs:t:T:U:lf:D:F:M:P:R:L:V"
LONG = {
    "builtin=": "-b", "client=": "-c", "connect": "-C", "debug": "-d", "define=": "-D", "file=": "-f",
    "fillfactor=": "-F", "host=": "-h", "initialize": "-i", "init-steps=": "-I", "jobs=": "-j", "log": "-l",
    "latency-limit=": "-L", "no-vacuum": "-n", "port=": "-p", "progress=": "-P", "protocol=": "-M", "quiet": "-q",
    "report-per-command": "-r", "rate=": "-R", "scale=": "-s", "select-only": "-S", "skip-some-updates": "-N",
    "time=": "-T", "transactions=": "-t", "username=": "-U", "vacuum-all": "-v", "unlogged-tables": "",
    "tablespace=": "", "index-tablespace=": "", "sampling-rate=": "", "aggregate-interval=": "",
    "progress-timestamp": "", "log-prefix=": "", "foreign-keys": "", "random-seed=": "", "show-script=": "",
    "partitions=": "", "partition-method=": "", "failures-detailed": "", "max-tries=": "", "verbose-errors": "",
    "help": "", "version": "-V",
}  # fmt: skip
"""Option table of pgbench 15, with the short form where it exists."""

_NO_COUNTERPART = {
    **dict.fromkeys(("-i", "-I", "-F", "-q"), "tables"),
    **dict.fromkeys(
        ("--unlogged-tables", "--tablespace", "--index-tablespace", "--foreign-keys", "--partitions"), "tables"
    ),
    "--partition-method": "tables",
    **dict.fromkeys(("-l", "--sampling-rate", "--aggregate-interval", "--log-prefix"), "log"),
    **dict.fromkeys(("-L", "--progress-timestamp"), "options"),
}
"""Options for something that ironbench does in another way or not at all."""
_NEEDLESS = ("-n", "-v", "-d", "--failures-detailed", "--verbose-errors")
"""Options that affect the output or actions of pgbench around the run, but not the run."""
_WORKLOADS = {"tpcb-like": "tpcb-like", "simple-update": "simple-update", "select-only": "select-only"}
_ONE_TO_ONE = {
    "-c": "--clients",
    "-j": "--threads",
    "-M": "--protocol",
    "-D": "-D",
    "-P": "--progress",
    "-R": "--rate",
    "--max-tries": "--max-tries",
    "--random-seed": "--seed",
}


@dataclass(frozen=True, slots=True)
class Translated:
    """`words` after `ironbench`, or the difference that prevents a translation."""

    words: list[str] = field(default_factory=list)
    database: str = ""
    difference: str = ""
    runs: bool = True
    """Whether it is a run, which needs a server."""


def translated(case: Case) -> Translated:
    """Returns the equivalent command of ironbench."""
    try:
        given, rest = getopt.gnu_getopt(case.arguments, SHORT, list(LONG))
    except getopt.GetoptError as error:
        # An option unknown to pgbench is passed unchanged.
        return Translated(["run", "script", f"--{error.opt}"])
    options = [(LONG.get(name[2:], LONG.get(f"{name[2:]}=", "")) or name, value) for name, value in given]
    names = [name for name, _ in options]
    if "--help" in names:
        return Translated(["--help"], runs=False)
    if "-V" in names:
        return Translated(["--version"], runs=False)
    if "--show-script" in names:
        return Translated(["show", _builtin(dict(options)["--show-script"])], runs=False)
    if ("-b", "list") in options:
        return Translated(["list", "workloads"], runs=False)
    for name in names:
        if name in _NO_COUNTERPART:
            return Translated(difference=_NO_COUNTERPART[name])
    return _run(options, rest)


def _run(options: list[tuple[str, str]], rest: list[str]) -> Translated:
    files: list[str] = []
    builtins: list[str] = []
    words: list[str] = []
    timed = False
    scale = ""
    for name, value in options:
        if name == "-f":
            files.append(value)
        elif name in ("-b", "-S", "-N"):
            builtins.append({"-S": "select-only", "-N": "simple-update"}.get(name) or _builtin(value))
        elif name in _ONE_TO_ONE:
            words += [_ONE_TO_ONE[name], value]
        elif name == "-t":
            timed = True
            words += ["--transactions", value]
        elif name == "-T":
            timed = True
            words += ["--duration", f"{value}s"]
        elif name == "-C":
            words += ["--reconnect", "1"]
        elif name == "-r":
            words.append("--report-per-statement")
        elif name == "-s":
            scale = value
        elif name not in _NEEDLESS and name not in ("-h", "-p", "-U"):
            raise AssertionError(f"{name} is not translated")
    if len(builtins) + bool(files) > 1:
        return Translated(difference="builtins")
    words += [] if timed else ["--transactions", "10"]
    if scale:
        words += ["-D", f"scale={scale}"] if files else ["--with", f"scale={scale}"]
    # Without a script, pgbench runs its TPC-B-like one.
    what = ["script", *files] if files else [builtins[0] if builtins else "tpcb-like"]
    return Translated(["run", *what, *words, "--warmup", "0s", "--no-observe"], rest[0] if rest else "")


def _builtin(name: str) -> str:
    """Completes a name, since pgbench accepts any unique prefix."""
    plain, at, weight = name.partition("@")
    found = [workload for workload in _WORKLOADS if workload.startswith(plain)]
    return (found[0] if len(found) == 1 else plain) + at + weight
