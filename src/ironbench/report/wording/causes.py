"""Words for the reasons why a trial is invalid, failed or aborted."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.record import ENGINE_DIED, NOT_BACK, NOT_WHOLE
from ironbench.report.wording.registry import wording
from ironbench.report.wording.terms import Configurations, configurations
from ironbench.report.wording.values import Strings, names, strings


@wording("error")
def error(error: Strings, last_words: Strings = "") -> str:
    """Example with error='the server closed the connection', last_words='out of memory': `the server closed the
    connection; last log lines: out of memory`."""
    return _with_last_words(names(error) or "an error", last_words)


@wording("aborted")
def aborted(error: Strings, last_words: Strings = "") -> str:
    """Example with error='a.sql, line 3: division by zero', last_words='out of memory': `a.sql, line 3: division by
    zero; last log lines: out of memory`."""
    return _with_last_words(names(error) or "an error ended the trial", last_words)


@wording(ENGINE_DIED, NOT_BACK)
def engine_died(error: Strings = "", last_words: Strings = "") -> str:
    """Example with error='connection reset by peer', last_words='out of memory': `the server crashed: connection reset
    by peer; last log lines: out of memory`."""
    died = f"the server crashed: {names(error)}" if strings(error) else "the server crashed"
    return _with_last_words(died, last_words)


def _with_last_words(text: str, last_words: Strings) -> str:
    return f"{text}; last log lines: {names(last_words)}" if strings(last_words) else text


@wording("device-died")
def device_died(how: Strings) -> str:
    """Example with how='the process of the emulated device hdd-15k was killed by SIGKILL': `the process of the emulated
    device hdd-15k was killed by SIGKILL`."""
    return names(how) or "the process of an emulated device ended"


@wording("check-failed")
def check_failed(check: Strings, expected: Strings = "", actual: Strings = "") -> str:
    """Example with check='every commit is there', expected='4,000', actual='3,999': `check failed: every commit is
    there (expected 4,000, found 3,999)`."""
    known = [f"{what} {names(value)}" for what, value in (("expected", expected), ("found", actual)) if strings(value)]
    found = f" ({', '.join(known)})" if known else ""
    return f"check failed: {names(check) or 'a check'}{found}"


@wording("interrupted")
def interrupted() -> str:
    """Example: `interrupted`."""
    return "interrupted"


@wording("nothing-finished")
def nothing_finished(unit: Strings) -> str:
    """Example with unit='transaction': `no transaction finished in the measured window`."""
    return f"no {names(unit) or 'transaction'} finished in the measured window"


@wording("not-driven")
def not_driven() -> str:
    """Example: `no load was run in the trial`."""
    return "no load was run in the trial"


@wording(NOT_WHOLE)
def block_not_whole(system: Configurations, error: Strings) -> str:
    """Example with system='WAL in memory', error='no space left on device': `the block is incomplete, because WAL in
    memory failed: no space left on device`."""
    why = f": {names(error)}" if strings(error) else ""
    return f"the block is incomplete, because {names(configurations(system)) or 'another system'} failed{why}"


@wording("probe-connection-broke")
def probe_connection_broke(error: Strings) -> str:
    """Example with error='terminating connection due to administrator command': `the probe client's connection broke:
    terminating connection due to administrator command`."""
    return f"the probe client's connection broke{f': {names(error)}' if strings(error) else ''}"


@wording("answers-wrong")
def answers_wrong(answers: Sequence[Sequence[str]]) -> str:
    """Example with answers=[('q01', '3 rows instead of 4'), ('q07', 'row 2, revenue: 1.5 instead of 1.7')]: `the answer
    of q01 is wrong: 3 rows instead of 4; the answer of q07 is wrong: row 2, revenue: 1.5 instead of 1.7`."""
    return (
        "; ".join(f"the answer of {name} is wrong: {actual}" for name, actual in answers)
        or "the database returned wrong query answers"
    )
