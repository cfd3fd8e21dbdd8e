"""Words for the comparison of two sides: how they differ, the ratio, plans, and parts of a transaction's time."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.report.wording.registry import wording
from ironbench.report.wording.target import milliseconds
from ironbench.report.wording.values import Strings, strings
from ironbench.words import counted, in_percent


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


@wording("lead-of-one-trial")
def of_one_trial() -> str:
    """no interval: one trial"""
    return "no interval: one trial"


@wording("lead-of-one-run")
def of_one_run() -> str:
    """no verdict: one run"""
    return "no verdict: one run"


@wording("lead-equal")
def equal(margin: float) -> str:
    """equal within 5 %"""
    return f"equal within {in_percent(margin)}"


@wording("lead")
def lead(ratio: float, higher_is_better: bool) -> str:
    """leads by 28 %; takes 50 % less time"""
    apart, more = in_percent(abs(ratio - 1)), ratio > 1
    if higher_is_better:
        return f"{'leads' if more else 'trails'} by {apart}"
    return f"takes {apart} {'longer' if more else 'less time'}"


@wording("lead-inconclusive")
def inconclusive() -> str:
    """inconclusive"""
    return "inconclusive"


@wording("work-of-one-side")
def work_of_one_side(side: str, work: str) -> str:
    """only old did igen-oltp scale=8"""
    return f"only {side} did {work}"


_NAMED = 3
"""Most steps that are named for each side."""


@wording("plans-unknown")
def plans_unknown() -> str:
    """its plans are not known"""
    return "its plans are not known"


@wording("plans-differ")
def plans_differ(more: Sequence[tuple[str, int]] = (), less: Sequence[tuple[str, int]] = ()) -> str:
    """the plan has Index Scan on orders, Nested Loop instead of parallel Seq Scan on orders and 2 more steps"""
    if more:
        return f"the plan has {_named(more)}" + (f" instead of {_named(less)}" if less else " in addition")
    return f"the plan leaves out {_named(less)}" if less else "the plan has the same steps"


def _named(steps: Sequence[tuple[str, int]]) -> str:
    words = ", ".join(f"{count} × {step}" if count > 1 else step for step, count in steps[:_NAMED])
    rest = len(steps) - _NAMED
    return f"{words} and {counted(rest, 'more step')}" if rest > 0 else words


@wording("no-clear-step")
def no_clear_step(before: str, after: str) -> str:
    """no part of the time differs clearly between log=disk and log=memory"""
    return f"no part of the time differs clearly between {before} and {after}"


@wording("largest-step")
def largest_step(whole_s: float, part: str, delta_s: float, low_s: float, high_s: float) -> str:
    """a transaction takes 1.5 ms less of a client's time. log flush: 1.2 ms less (1.1 ms to 1.3 ms)"""
    low, high = sorted((abs(low_s), abs(high_s)))  # a clear step has both ends on the same side of 0
    step = f"{part}: {_change(delta_s)} ({milliseconds(low)} to {milliseconds(high)})"
    return f"a transaction takes {_change(whole_s)} of a client's time. {step}"


def _change(seconds: float) -> str:
    return f"{milliseconds(abs(seconds))} {'more' if seconds > 0 else 'less'}"


@wording("sampling-error")
def sampling_error(least_blocks: int | None) -> str:
    """sampling error only: a configuration has fewer than 3 blocks"""
    few = "a single trial" if least_blocks is None else f"fewer than {counted(least_blocks, 'block')}"
    return f"sampling error only: a configuration has {few}"


@wording("t-intervals-of-differences")
def t_intervals_of_differences(blocks: int) -> str:
    """t intervals of the differences of 6 blocks"""
    return f"t intervals of the differences of {counted(blocks, 'block')}"


@wording("welch-intervals")
def welch_intervals(trials: Sequence[int], in_blocks: bool) -> str:
    """Welch's t intervals of 6 and 5 trials: not every block has both configurations"""
    why = "not every block has both configurations" if in_blocks else "trials of different runs do not pair"
    return f"Welch's t intervals of {' and '.join(map(str, trials))} trials: {why}"
