"""Words for how two sides differ besides what is compared."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Strings, strings
from ironbench.words import counted


def _against(a: Strings, b: Strings, nothing: str = "none") -> str:
    left, right = (", ".join(strings(side)) or nothing for side in (a, b))
    return f"{left} against {right}"


@wording("work-differs")
def work_differs(a: Strings, b: Strings) -> str:
    """the work differs: igen-oltp scale=2 against scale=4"""
    return f"the work differs: {_against(a, b)}"


@wording("script-differs")
def script_differs(script: Strings) -> str:
    """the work differs: a.sql has other contents"""
    return f"the work differs: {', '.join(strings(script)) or 'a script'} has other contents"


@wording("data-differ")
def data_differ(a: Strings, b: Strings) -> str:
    """the data differ: shop.dump (own-12ab) against the workload's"""
    return f"the data differ: {_against(a, b, 'those of the workload')}"


@wording("versions-differ")
def versions_differ(a: Strings, b: Strings) -> str:
    """ironbench 0.1.0 measured one, 0.2.0 the other"""
    left, right = (", ".join(strings(side)) or "unknown" for side in (a, b))
    return f"ironbench {left} measured one, {right} the other"


@wording("loads-differ")
def loads_differ(a: float | None = None, b: float | None = None) -> str:
    """the load differs: a closed loop against an open loop at 500/s"""
    return f"the load differs: {loop(a)} against {loop(b)}"


def loop(rate: float | None) -> str:
    """`a closed loop`, `an open loop at 500/s`"""
    return "a closed loop" if rate is None else f"an open loop at {units.rate(rate)}"


@wording("methods-differ")
def methods_differ(a: Strings, b: Strings) -> str:
    """the method differs: by trials against by slices"""
    return f"the method differs: {_by(a)} against {_by(b)}"


def _by(method: Strings) -> str:
    return " and ".join(f"by {one}" for one in strings(method)) or "by trials"


@wording("clients-differ")
def clients_differ(a: Strings, b: Strings) -> str:
    """the number of clients differs: 4 against 2"""
    return f"the number of clients differs: {_against(a, b)}"


@wording("workers-differ")
def workers_differ(a: Sequence[float], b: Sequence[float]) -> str:
    """the number of workers that drove the load differs: 2 against 1"""
    left, right = (", ".join(f"{count:g}" for count in side) for side in (a, b))
    return f"the number of workers that drove the load differs: {left} against {right}"


@wording("trials-of-fewer-workers")
def trials_of_fewer_workers(workers: Sequence[float], requested: int, trials: int, of: int) -> str:
    """3 of 4 workers drove 2 of 12 trials: machines were lost"""
    drove = ", ".join(f"{count:g}" for count in workers)
    return f"{drove} of {requested} workers drove {trials} of {counted(of, 'trial')}: machines were lost"


@wording("fact-differs")
def fact_differs(fact: str, a: str, b: str) -> str:
    """load: threads differs: 1 against 2"""
    kind, _, rest = fact.partition(".")
    return f"{kind}: {rest or kind} differs: {a} against {b}"


@wording("not-in-turns")
def not_in_turns() -> str:
    """the systems were run one after the other, not in turns: a drift of the machine would look like a difference"""
    return "the systems were run one after the other, not in turns: a drift of the machine would look like a difference"


@wording("server-machine-unknown")
def server_machine_unknown() -> str:
    """the machine of a server is unknown, and may differ: --server ssh://HOST records it"""
    return "the machine of a server is unknown, and may differ: --server ssh://HOST records it"


@wording("machines-differ")
def machines_differ() -> str:
    """the machines differ, or the same machine was set up differently"""
    return "the machines differ, or the same machine was set up differently"


@wording("client-machines-differ")
def client_machines_differ() -> str:
    """the clients ran on different machines, or on one that was set up differently"""
    return "the clients ran on different machines, or on one that was set up differently"
