"""Words for the comparison of two sides: how the sides differ, the ratio, query plans, and wait classes."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.lab import Configuration
from ironbench.report.waits import wait_class
from ironbench.report.wording.registry import wording
from ironbench.report.wording.target import milliseconds
from ironbench.report.wording.terms import configuration
from ironbench.report.wording.values import CI, Strings, strings
from ironbench.words import counted, in_percent


def _against(a: Strings, b: Strings, nothing: str = "none") -> str:
    left, right = (", ".join(strings(side)) or nothing for side in (a, b))
    return f"{left} vs. {right}"


@wording("work-differs")
def work_differs(a: Strings, b: Strings) -> str:
    """Example with a='igen-oltp scale=2', b='scale=4': `the work differs: igen-oltp scale=2 vs. scale=4`."""
    return f"the work differs: {_against(a, b)}"


@wording("script-differs")
def script_differs(script: Strings) -> str:
    """Example with script='a.sql': `the work differs: the two sides have different versions of a.sql`."""
    return f"the work differs: the two sides have different versions of {', '.join(strings(script)) or 'a script'}"


WORKLOAD_DATA = "the workload's data"


@wording("data-differ")
def data_differ(a: Strings, b: Strings) -> str:
    """Example with a='shop.dump (own-12ab)', b=(): `the data differs: shop.dump (own-12ab) vs. the workload's data`."""
    return f"the data differs: {_against(a, b, WORKLOAD_DATA)}"


@wording("versions-differ")
def versions_differ(a: Strings, b: Strings) -> str:
    """Example with a='0.1.0', b='0.2.0': `the ironbench versions differ: 0.1.0 vs. 0.2.0`."""
    left, right = (", ".join(strings(side)) or "unknown" for side in (a, b))
    return f"the ironbench versions differ: {left} vs. {right}"


@wording("loads-differ")
def loads_differ(a: float | None = None, b: float | None = None) -> str:
    """Example with b=500: `the load differs: closed loop vs. open loop at 500/s`."""
    return f"the load differs: {loop(a)} vs. {loop(b)}"


def loop(rate: float | None) -> str:
    """Examples: `closed loop`, `open loop at 500/s`."""
    return "closed loop" if rate is None else f"open loop at {units.rate(rate)}"


@wording("methods-differ")
def methods_differ(a: Strings, b: Strings) -> str:
    """Example with a='trials', b='slices': `the measurement method differs: by trials vs. by slices`."""
    return f"the measurement method differs: {_by(a)} vs. {_by(b)}"


def _by(method: Strings) -> str:
    return " and ".join(f"by {one}" for one in strings(method)) or "by trials"


@wording("profiles-differ")
def profiles_differ(a: Strings, b: Strings) -> str:
    """Example with a='', b='cpu': `stack sampling, which costs CPU time, differs: no profile vs. `--profile cpu``."""
    return f"stack sampling, which costs CPU time, differs: {_profile(a)} vs. {_profile(b)}"


def _profile(request: Strings) -> str:
    return " and ".join(f"`--profile {one}`" for one in strings(request)) or "no profile"


@wording("clients-differ")
def clients_differ(a: Strings, b: Strings) -> str:
    """Example with a='4', b='2': `the number of clients differs: 4 vs. 2`."""
    return f"the number of clients differs: {_against(a, b)}"


@wording("workers-differ")
def workers_differ(a: Sequence[float], b: Sequence[float]) -> str:
    """Example with a=(2,), b=(1,): `the number of load workers differs: 2 vs. 1`."""
    left, right = (", ".join(f"{count:g}" for count in side) for side in (a, b))
    return f"the number of load workers differs: {left} vs. {right}"


@wording("trials-of-fewer-workers")
def trials_of_fewer_workers(workers: Sequence[float], requested: int, trials: int, of: int) -> str:
    """Example with workers=(3,), requested=4, trials=2, of=12: `in 2 of 12 trials, only 3 of 4 workers ran the load,
    because machines were lost`."""
    drove = ", ".join(f"{count:g}" for count in workers)
    return (
        f"in {trials} of {counted(of, 'trial')}, only {drove} of {requested} workers ran the load, because machines "
        "were lost"
    )


@wording("fact-differs")
def fact_differs(fact: str, a: str, b: str) -> str:
    """Example with fact='load.threads', a='1', b='2': `different load: threads 1 vs. 2`."""
    kind, _, rest = fact.partition(".")
    return f"different {kind}: {rest or kind} {a} vs. {b}"


@wording("not-in-turns")
def not_in_turns() -> str:
    """Example: `the systems were measured one after the other, not interleaved, so a change of the machine's speed
    during the measurement looks like a difference between the systems`."""
    return (
        "the systems were measured one after the other, not interleaved, so a change of the machine's speed during "
        "the measurement looks like a difference between the systems"
    )


@wording("server-machine-unknown")
def server_machine_unknown() -> str:
    """Example: `the machine of at least one server is unknown, so the two machines may differ: use `--server
    ssh://HOST` to record the server's machine`."""
    return (
        "the machine of at least one server is unknown, so the two machines may differ: use `--server ssh://HOST` "
        "to record the server's machine"
    )


@wording("machines-differ")
def machines_differ() -> str:
    """Example: `the trials ran on different machines, or on one machine with different settings`."""
    return "the trials ran on different machines, or on one machine with different settings"


@wording("client-machines-differ")
def client_machines_differ() -> str:
    """Example: `the clients ran on different machines, or on one machine with different settings`."""
    return "the clients ran on different machines, or on one machine with different settings"


@wording("no-difference-one-trial")
def no_difference_one_trial(both: bool, first: bool) -> str:
    """Example with both=True, first=True: `each side has only one trial, so the variation between trials is
    unknown`."""
    if both:
        return "each side has only one trial, so the variation between trials is unknown"
    return (
        f"the {'first' if first else 'second'} of the two sides has only one trial, so the variation between its "
        "trials is unknown"
    )


@wording("no-difference-ranges-overlap")
def no_difference_ranges_overlap() -> str:
    """Example: `the ranges of the repeats overlap`."""
    return "the ranges of the repeats overlap"


@wording("no-difference-within-interval")
def no_difference_within_interval() -> str:
    """Example: `the 95% CI includes 0%`."""
    return f"the {CI} includes 0%"


@wording("no-difference-too-few-blocks")
def no_difference_too_few_blocks(least: int) -> str:
    """Example with least=3: `fewer than 3 blocks have usable trials of both configurations`."""
    return f"fewer than {least} blocks have usable trials of both configurations"


@wording("difference-shown")
def difference_shown() -> str:
    """Example: `the ranges of the repeats do not overlap`."""
    return "the ranges of the repeats do not overlap"


@wording("lead-of-one-trial")
def of_one_trial() -> str:
    """Example: `no CI, because there is only one trial`."""
    return "no CI, because there is only one trial"


@wording("lead-of-one-run")
def of_one_run() -> str:
    """Example: `no verdict, because there is only one run`."""
    return "no verdict, because there is only one run"


@wording("lead-equal")
def equal(margin: float) -> str:
    """Example with margin=0.05: `equal within 5%`."""
    return f"equal within {in_percent(margin)}"


@wording("lead")
def lead(ratio: float, higher_is_better: bool) -> str:
    """Example with ratio=1.28, higher_is_better=True: `28% higher`."""
    size = f"{in_percent(abs(ratio - 1))} {'higher' if ratio > 1 else 'lower'}"
    return size if higher_is_better else f"{size}, which is {'worse' if ratio > 1 else 'better'}"


@wording("lead-inconclusive")
def inconclusive() -> str:
    """Example: `inconclusive`."""
    return "inconclusive"


@wording("work-of-one-side")
def work_of_one_side(side: str, work: str) -> str:
    """Example with side='old', work='igen-oltp scale=8': `only old ran the work igen-oltp scale=8`."""
    return f"only {side} ran the work {work}"


_NAMED = 3
"""Maximum number of plan steps that a sentence names for each side."""


@wording("plans-unknown")
def plans_unknown() -> str:
    """Example: `the query plans are unknown`."""
    return "the query plans are unknown"


@wording("plans-differ")
def plans_differ(more: Sequence[tuple[str, int]] = (), less: Sequence[tuple[str, int]] = ()) -> str:
    """Example with more=[('Index Scan on orders', 1), ('Nested Loop', 1)], less=[('Seq Scan on orders', 1)]: `new plan:
    Index Scan on orders, Nested Loop instead of Seq Scan on orders`."""
    if more and less:
        return f"new plan: {_step_names(more)} instead of {_step_names(less)}"
    if more:
        return f"new plan with additional steps: {_step_names(more)}"
    return f"new plan without these steps: {_step_names(less)}" if less else "the query plans have the same steps"


def _step_names(steps: Sequence[tuple[str, int]]) -> str:
    words = ", ".join(f"{count}x {step}" if count > 1 else step for step, count in steps[:_NAMED])
    rest = len(steps) - _NAMED
    return f"{words} and {counted(rest, 'more step')}" if rest > 0 else words


@wording("no-clear-step")
def no_clear_step(before: Configuration, after: Configuration) -> str:
    """Example with before='WAL on disk', after='WAL in memory': `no wait class differs clearly between WAL on disk and
    WAL in memory`."""
    return f"no wait class differs clearly between {configuration(before)} and {configuration(after)}"


@wording("largest-step")
def largest_step(whole_s: float, part: str, delta_s: float, low_s: float, high_s: float) -> str:
    """Example with whole_s=-0.0015, part='WAL', delta_s=-0.0012, low_s=-0.0013, high_s=-0.0011: `a transaction takes
    1.5 ms less. Largest change: WAL, 1.2 ms less (95% CI 1.1 ms to 1.3 ms)`."""
    low, high = sorted((abs(low_s), abs(high_s)))  # the two bounds have the same sign if the change is clear
    step = f"{wait_class(part)}, {_change(delta_s)} ({CI} {milliseconds(low)} to {milliseconds(high)})"
    return f"a transaction takes {_change(whole_s)}. Largest change: {step}"


@wording("largest-step-without-interval")
def largest_step_without_interval(whole_s: float, part: str, delta_s: float) -> str:
    """Example with whole_s=-0.0015, part='WAL', delta_s=-0.0012: `a transaction takes 1.5 ms less. Largest change: WAL,
    1.2 ms less (no confidence interval: too few trials)`."""
    step = f"{wait_class(part)}, {_change(delta_s)} (no confidence interval: too few trials)"
    return f"a transaction takes {_change(whole_s)}. Largest change: {step}"


def _change(seconds: float) -> str:
    return f"{milliseconds(abs(seconds))} {'more' if seconds > 0 else 'less'}"


@wording("no-step-intervals")
def no_step_intervals(least_blocks: int | None) -> str:
    """Example with least_blocks=3: `there is no confidence interval, because fewer than 3 blocks have usable trials of
    both configurations`."""
    if least_blocks is None:
        return "there is no confidence interval, because a configuration has a single trial"
    return f"there is no confidence interval, because {no_difference_too_few_blocks(least_blocks)}"


@wording("t-intervals-of-differences")
def t_intervals_of_differences(blocks: int) -> str:
    """Example with blocks=6: `t confidence intervals of the paired differences in 6 blocks`."""
    return f"t confidence intervals of the paired differences in {counted(blocks, 'block')}"


@wording("welch-intervals")
def welch_intervals(trials: Sequence[int]) -> str:
    """Example with trials=(6, 5): `Welch's t confidence intervals of 6 and 5 trials, because trials of different runs
    are not paired`."""
    counts = " and ".join(map(str, trials))
    return f"Welch's t confidence intervals of {counts} trials, because trials of different runs are not paired"
