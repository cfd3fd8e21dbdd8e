"""Words for problems with the load or the clients, such as failures, missed rates, saturated clients and unsteady
throughput."""

from __future__ import annotations

from ironbench import units
from ironbench.model.judging_limits import CLIENT_SATURATED, CUT_OFF, FAILED_LIMITS, OWN_DELAY, RATE_KEPT, UNEVEN
from ironbench.model.note import NoteRange
from ironbench.model.record import (
    CLIENTS_CUT_OFF,
    CLIENTS_LOST,
    CLIENTS_UNEVEN,
    CONNECTIONS_LOST,
    LATENCY_LATE,
    LOOP_DELAYED,
    RATE_NOT_KEPT,
    RELAY_SATURATED,
    STOPPED_ON_LOSS,
)
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import (
    Number,
    Strings,
    agreed,
    count,
    either,
    highest,
    low_to_high,
    names,
    number,
    per_second,
    percent,
    span,
    strings,
)


@wording("transactions-failed", "few-transactions-failed")
def transactions_failed(
    failed: Number, ended: Number, share: Number, one: Strings, many: Strings, script: Strings, first: Strings
) -> str:
    """Example with failed=12, ended=4000, share=0.003, one='transaction', many='transactions', script='a.sql',
    first='a.sql, line 3: division by zero': `12 of 4,000 transactions of script a.sql failed (0.3%); the first error:
    a.sql, line 3: division by zero`."""
    of = f" of script {names(script)}" if strings(script) else ""
    how_many = f"{number(failed)} of {_units(ended, one, many)}{of} failed"
    return _with_first(f"{how_many} ({percent(share, *FAILED_LIMITS)})", first)


@wording("failed-outside-window")
def failed_outside_window(
    failed: Number, ended: Number, share: Number, one: Strings, many: Strings, script: Strings, first: Strings
) -> str:
    """Example with failed=5, ended=900, share=0.0056, one='transaction', many='transactions', script='a.sql',
    first='a.sql, line 3: division by zero': `5 of 900 transactions that ended during the warm-up or after the measured
    window failed (0.56%); the first error: a.sql, line 3: division by zero`."""
    how_many = (
        f"{number(failed)} of {_units(ended, one, many)} that ended during the warm-up or after the measured window"
    )
    return _with_first(f"{how_many} failed ({percent(share, *FAILED_LIMITS)})", first)


def _units(value: Number, one: Strings, many: Strings) -> str:
    """Formats a number of units of work: `4,000 transactions`."""
    return count(value, either(one, "transaction"), either(many, "transactions"))


def _with_first(text: str, first: Strings) -> str:
    return f"{text}; the first error: {names(first)}" if strings(first) else text


@wording("stopped-on-error")
def stopped_on_error(reason: Strings) -> str:
    """Example with reason='unknown': `the first error ended the trial: correct the script, or use `--on-error continue`
    (`load.on_error` in a lab) to continue after errors`."""
    fix = "correct the script, or use `--on-error continue` (`load.on_error` in a lab) to continue after errors"
    if "denied" in strings(reason):
        fix = (
            "grant the database role the privilege that the statement needs (in the template database, if the "
            "lab uses one), or name another role in `--dsn`"
        )
    elif "replay" in strings(reason):
        fix = (
            "leave out the transactions that contain the statement (`--with except=statement:PATTERN`), or use "
            "`--on-error continue` (`load.on_error` in a lab) to continue after errors"
        )
    elif "parameter" in strings(reason):
        fix = (
            "use `--protocol simple`, which substitutes variables into the statement text as pgbench does by "
            f"default; if the error remains, {fix}"
        )
    return f"the first error ended the trial: {fix}"


@wording("fewer-workers")
def fewer_workers(workers: Number, requested: Number) -> str:
    """Example with workers=3, requested=4: `only 3 of 4 workers ran the load, because machines of the cluster were
    lost`."""
    return (
        f"only {number(workers)} of {count(requested, 'worker')} ran the load, because machines of the cluster "
        "were lost"
    )


@wording("client-saturated")
def client_saturated(
    busy: Number = 0.0,
    threads: Number = 0,
    clients: Number = 0,
    cores: Number = 0.0,
    workers: Strings = (),
    which: Strings = "",
) -> str:
    """Example with busy=0.97, threads=2, clients=8: `the client's 2 threads were 97% busy and may be the bottleneck:
    increase `--threads``."""
    if strings(workers):
        whose = "machines of" if "machines" in strings(which) else "threads of"
        workers_named = f"{'worker' if len(strings(workers)) == 1 else 'workers'} {names(workers)}"
        text = f"the {whose} {workers_named} were up to {percent(busy, CLIENT_SATURATED)} busy"
        return f"{text} and may be the bottleneck: add workers or threads"
    if highest(cores):
        used = low_to_high(cores, lambda one: f"{one:.2f}")
        return (
            f"the client process used {used} CPU cores and may be the bottleneck, because it serves its "
            "connections one after the other: use fewer clients, or an engine whose protocol ironbench "
            "implements itself"
        )
    only = highest(threads) == 1
    which_threads = "the client's only thread was" if only else f"the client's {count(threads, 'thread')} were"
    more = (
        "increase `--threads`"
        if highest(threads) < highest(clients)
        else "increase `--clients` and `--threads`, because each client already has its own thread"
    )
    return f"{which_threads} {percent(busy, CLIENT_SATURATED)} busy and may be the bottleneck: {more}"


@wording(RELAY_SATURATED)
def relay_saturated(busy: Number) -> str:
    """Example with busy=0.97: `the relay that adds network latency was 97% busy and may be the bottleneck: use fewer
    clients, or a machine with more cores`."""
    return (
        f"the relay that adds network latency was {percent(busy, CLIENT_SATURATED)} busy and may be the "
        "bottleneck: use fewer clients, or a machine with more cores"
    )


@wording(LATENCY_LATE)
def latency_late(declared_s: Number, added_s: Number) -> str:
    """Example with declared_s=0.0002, added_s=0.00035: `the relay added 350 µs of network latency per round trip
    instead of 200 µs`."""
    added, declared = low_to_high(added_s, units.span), low_to_high(declared_s, units.span)
    return f"the relay added {added} of network latency per round trip instead of {declared}"


@wording(RATE_NOT_KEPT)
def rate_not_kept(
    finished: Number, waiting: Number, longest_wait_s: Number, warmup_s: Number, rate: Number = 0.0, curve: Strings = ""
) -> str:
    """Example with finished=0.92, waiting=1200, longest_wait_s=3.0, warmup_s=0.0, rate=500.0: `target rate of 500/s not
    sustained: 92% of the scheduled transactions were finished, and 1,200 were still waiting at the end, for up to 3
    s`."""
    target = f"load curve {names(curve)}" if strings(curve) else f"target rate of {per_second(rate)}"
    text = f"{target} not sustained: {percent(finished, RATE_KEPT)} of the scheduled transactions were finished"
    if not highest(waiting):  # the work ended, but later than at the target rate
        return text
    since = " transactions scheduled since the start of the warm-up" if highest(warmup_s) else ""
    text += f", and {number(waiting)}{since} {agreed(waiting)} still waiting at the end"
    return f"{text}, for up to {units.span(highest(longest_wait_s))}" if highest(longest_wait_s) else text


@wording(CLIENTS_CUT_OFF)
def clients_cut_off(cut_off: Number, longest_wait_s: Number, share: Number, one: Strings, many: Strings) -> str:
    """Example with cut_off=3, longest_wait_s=9.0, share=0.03, one='transaction', many='transactions': `3 transactions
    were still running at the end of the measured window and had run for up to 9 s, longer than 99% of the finished
    transactions; they took 3% of the clients' time. Check for lock waits`."""
    return (
        f"{_units(cut_off, one, many)} {agreed(cut_off)} still running at the end of the measured window and had "
        f"run for up to {units.span(highest(longest_wait_s))}, longer than 99% of the finished "
        f"{either(many, 'transactions')}; "
        f"{agreed(cut_off, 'it', 'they')} took {percent(share, CUT_OFF)} of the clients' time. Check for lock "
        "waits"
    )


@wording(CLIENTS_UNEVEN)
def clients_uneven(mean: Number, relative: Number) -> str:
    """Example with mean=1000.0, relative=0.4: `some clients completed far more transactions than others: 1,000 per
    client on average, with a standard deviation of 40% of the mean`."""
    return (
        f"some clients completed far more transactions than others: {number(mean)} per client on average, with a "
        f"standard deviation of {percent(relative, UNEVEN)} of the mean"
    )


@wording(STOPPED_ON_LOSS)
def stopped_on_loss() -> str:
    """Example: `a lost connection ended the trial: use `--on-error continue` (`load.on_error` in a lab) to end only the
    client that lost its connection, or `--reconnect-on-loss` (`load.reconnect_on_loss` in a lab) to open a new
    connection`."""
    return (
        "a lost connection ended the trial: use `--on-error continue` (`load.on_error` in a lab) to end only the "
        "client that lost its connection, or `--reconnect-on-loss` (`load.reconnect_on_loss` in a lab) to open a new "
        "connection"
    )


@wording(CLIENTS_LOST)
def clients_lost(lost: Number, clients: Number, first: Strings) -> str:
    """Example with lost=3, clients=8, first='connection reset by peer': `3 of 8 clients lost their connection and
    stopped, so the load was lower than planned; the first error: connection reset by peer`."""
    whose = agreed(lost, "its", "their")
    how_many = f"{number(lost)} of {count(clients, 'client')} lost {whose} connection and stopped"
    return _with_first(f"{how_many}, so the load was lower than planned", first)


@wording(CONNECTIONS_LOST)
def connections_lost(lost: Number, first: Strings) -> str:
    """Example with lost=2, first='terminating connection due to administrator command': `2 client connections were
    lost; the first error: terminating connection due to administrator command`."""
    return _with_first(f"{count(lost, 'client connection')} {agreed(lost)} lost", first)


@wording(LOOP_DELAYED)
def loop_delayed(share: Number, rearms: Number) -> str:
    """Example with share=0.31, rearms=0: `replies waited for ironbench's event loop during 31% of the service time;
    increase `--threads``."""
    causes = []
    if highest(share) > OWN_DELAY:
        causes.append(
            f"replies waited for ironbench's event loop during {percent(share, OWN_DELAY)} of the service time"
        )
    if highest(rearms) or not causes:
        causes.append(
            f"{count(rearms, 'reply', 'replies')} of the server arrived while all receive buffers of ironbench were "
            "in use"
        )
    return f"{' and '.join(causes)}; increase `--threads`"


@wording("not-steady")
def not_steady(change: Number, after_s: Number | None = None) -> str:
    """Example with change=-0.2, after_s=12.0: `throughput fell by 20% after 12 s and stayed at that level`."""
    return f"throughput {changed(change, after_s)}"


def changed(change: Number, after_s: Number | None) -> str:
    """Example with change=-0.2, after_s=12.0: `fell by 20% after 12 s and stayed at that level`."""
    if highest(change) < 0:
        by = f"fell by {_turned(change)}"
    elif isinstance(change, NoteRange) and change.low < 0:
        by = f"changed by {percent(change)}"
    else:
        by = f"rose by {percent(change)}"
    return (
        f"{by} from the trial's start to its end"
        if after_s is None
        else f"{by} after {span(after_s)} and stayed at that level"
    )


def _turned(change: Number) -> str:
    return percent(NoteRange(-change.high, -change.low) if isinstance(change, NoteRange) else -change)


@wording("samples-dropped")
def samples_dropped(samples: Number) -> str:
    """Example with samples=40: `40 observer samples were dropped`."""
    return f"{count(samples, 'observer sample')} {agreed(samples)} dropped"


_NOT_ASSESSED = {
    "pilot failed": "the pilot trial failed",
    "pilot damaged": "the timeline of the pilot trial is damaged",
    "too short": "the pilot trial was too short",
    "still changing": "throughput was still changing in the second half of the pilot trial",
}


@wording("warm-up-not-assessed")
def warm_up_not_assessed(reason: Strings, warmup_s: Number) -> str:
    """Example with reason='pilot failed', warmup_s=5.0: `the necessary warm-up time could not be measured (the pilot
    trial failed); a warm-up of 5 s was used`."""
    why = names([_NOT_ASSESSED.get(one, one) for one in strings(reason)])
    return (
        f"the necessary warm-up time could not be measured{f' ({why})' if why else ''}; a warm-up of "
        f"{span(warmup_s)} was used"
    )
