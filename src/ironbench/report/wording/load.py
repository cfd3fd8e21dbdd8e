"""Words for what clients and the drive loop did: failures, rates, saturation, steadiness."""

from __future__ import annotations

from ironbench import units
from ironbench.model.limits import CLIENT_SATURATED, CUT_OFF, OWN_DELAY, RATE_KEPT
from ironbench.model.note import NoteRange
from ironbench.model.record import (
    CLIENTS_CUT_OFF,
    CLIENTS_LOST,
    CONNECTIONS_LOST,
    FAILED_LIMITS,
    LOOP_DELAYED,
    RATE_NOT_KEPT,
    STOPPED_ON_LOSS,
)
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import (
    Number,
    Strings,
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
    """12 of 4,000 transactions of script a.sql failed (0.3%); the first: a.sql, line 3: division by zero"""
    of = f" of script {names(script)}" if strings(script) else ""
    how_many = f"{number(failed)} of {_units(ended, one, many)}{of} failed"
    return _with_first(f"{how_many} ({percent(share, *FAILED_LIMITS)})", first)


@wording("failed-outside-window")
def failed_outside_window(
    failed: Number, ended: Number, share: Number, one: Strings, many: Strings, script: Strings, first: Strings
) -> str:
    """5 of 900 transactions of the warm-up, or after the window, failed (0.56%); the first: a.sql, line 3: …"""
    how_many = f"{number(failed)} of {_units(ended, one, many)} of the warm-up, or after the window,"
    return _with_first(f"{how_many} failed ({percent(share, *FAILED_LIMITS)})", first)


def _units(value: Number, one: Strings, many: Strings) -> str:
    """Counts units of work: `4,000 transactions`."""
    return count(value, either(one, "transaction"), either(many, "transactions"))


def _with_first(text: str, first: Strings) -> str:
    return f"{text}; the first: {names(first)}" if strings(first) else text


@wording("stopped-on-error")
def stopped_on_error(reason: Strings) -> str:
    """the first error ended the trial: correct the script, or …"""
    fix = "correct the script, or continue after errors by --on-error continue (load.on_error in a lab)"
    if "denied" in strings(reason):
        fix = (
            "grant the role the right that the statement needs (GRANT; for a template, in the template), or name "
            "another role in --dsn"
        )
    elif "parameter" in strings(reason):
        fix = (
            "--protocol simple writes variables into the statement, as pgbench does by default; if that does not "
            f"help, {fix}"
        )
    return f"the first error ended the trial: {fix}"


@wording("fewer-workers")
def fewer_workers(workers: Number, requested: Number) -> str:
    """3 of 4 workers drove the load: machines of the cluster were lost"""
    return f"{number(workers)} of {count(requested, 'worker')} drove the load: machines of the cluster were lost"


@wording("client-saturated")
def client_saturated(
    busy: Number = 0.0,
    threads: Number = 0,
    clients: Number = 0,
    cores: Number = 0.0,
    workers: Strings = (),
    which: Strings = "",
) -> str:
    """the client's 2 threads were 97% busy: they may be the limit; add --threads"""
    if strings(workers):
        whose = "machines of" if "machines" in strings(which) else "threads of"
        workers_named = f"{'worker' if len(strings(workers)) == 1 else 'workers'} {names(workers)}"
        text = f"the {whose} {workers_named} were up to {percent(busy, CLIENT_SATURATED)} busy"
        return f"{text}: they may be the limit; add workers, or threads"
    if highest(cores):
        used = low_to_high(cores, lambda one: f"{one:.2f}")
        return (
            f"the client's process used {used} cores, and its connections take turns: it may be the limit; use fewer "
            "clients, or a protocol that ironbench speaks itself"
        )
    only = highest(threads) == 1
    which_threads = "the client's only thread was" if only else f"the client's {count(threads, 'thread')} were"
    it = "it" if only else "they"
    more = (
        "add --threads" if highest(threads) < highest(clients) else "add --clients and --threads: each client has one"
    )
    return f"{which_threads} {percent(busy, CLIENT_SATURATED)} busy: {it} may be the limit; {more}"


@wording(RATE_NOT_KEPT)
def rate_not_kept(
    finished: Number, waiting: Number, longest_wait_s: Number, warmup_s: Number, rate: Number = 0.0, curve: Strings = ""
) -> str:
    """the target rate of 500/s was not sustained: 92% of it was finished, 1,200 were waiting at the end"""
    target = f"the load curve {names(curve)}" if strings(curve) else f"the target rate of {per_second(rate)}"
    since = " due since the warm-up began" if highest(warmup_s) else ""
    text = f"{target} was not sustained: {percent(finished, RATE_KEPT)} of it was finished"
    text += f", {number(waiting)}{since} were waiting at the end"
    return f"{text}, for up to {units.span(highest(longest_wait_s))}" if highest(longest_wait_s) else text


@wording(CLIENTS_CUT_OFF)
def clients_cut_off(cut_off: Number, longest_wait_s: Number, share: Number, one: Strings, many: Strings) -> str:
    """3 transactions had not ended when the window closed and had run for up to 9 s, longer than 99% of …"""
    return (
        f"{_units(cut_off, one, many)} had not ended when the window closed and had run for up to "
        f"{units.span(highest(longest_wait_s))}, longer than 99% of those that ended; they took "
        f"{percent(share, CUT_OFF)} of the clients' time. Look for locks that they waited for"
    )


@wording(STOPPED_ON_LOSS)
def stopped_on_loss() -> str:
    """a lost connection ended the trial: with --on-error continue only its client ends, …"""
    return (
        "a lost connection ended the trial: with --on-error continue only its client ends, with --reconnect-on-loss it "
        "opens a new one (load.on_error, load.reconnect_on_loss in a lab)"
    )


@wording(CLIENTS_LOST)
def clients_lost(lost: Number, clients: Number, first: Strings) -> str:
    """3 of 8 clients lost the connection and ended, so that the load was lower than planned; the first: …"""
    how_many = f"{number(lost)} of {count(clients, 'client')} lost the connection and ended"
    return _with_first(f"{how_many}, so that the load was lower than planned", first)


@wording(CONNECTIONS_LOST)
def connections_lost(lost: Number, first: Strings) -> str:
    """2 connections of clients were lost; the first: terminating connection due to administrator command"""
    verb = "was" if number(lost) == "1" else "were"
    return _with_first(f"{count(lost, 'connection')} of clients {verb} lost", first)


@wording(LOOP_DELAYED)
def loop_delayed(share: Number, rearms: Number) -> str:
    """replies waited for ironbench's own loop during 31% of the service time; use more --threads"""
    causes = []
    if highest(share) > OWN_DELAY:
        causes.append(f"replies waited for ironbench's own loop during {percent(share, OWN_DELAY)} of the service time")
    if highest(rearms) or not causes:
        causes.append(f"{count(rearms, 'reply', 'replies')} found all receive buffers in use")
    return f"{' and '.join(causes)}; use more --threads"


@wording("not-steady")
def not_steady(change: Number, after_s: Number | None = None) -> str:
    """throughput fell by 20% after 12 s and stayed there"""
    return f"throughput {changed(change, after_s)}"


def changed(change: Number, after_s: Number | None) -> str:
    """fell by 20% after 12 s and stayed there; rose by 11 to 15% between the trial's start and its end"""
    if highest(change) < 0:
        by = f"fell by {_turned(change)}"
    elif isinstance(change, NoteRange) and change.low < 0:
        by = f"changed by {percent(change)}"
    else:
        by = f"rose by {percent(change)}"
    return (
        f"{by} from the trial's start to its end" if after_s is None else f"{by} after {span(after_s)} and stayed there"
    )


def _turned(change: Number) -> str:
    return percent(NoteRange(-change.high, -change.low) if isinstance(change, NoteRange) else -change)


@wording("samples-dropped")
def samples_dropped(samples: Number) -> str:
    """40 observer samples were dropped"""
    return f"{count(samples, 'observer sample')} {'was' if highest(samples) == 1 else 'were'} dropped"


_NOT_ASSESSED = {
    "pilot failed": "its pilot failed",
    "pilot damaged": "the timeline of its pilot is damaged",
    "too short": "its pilot was too short",
    "still changing": "throughput was still changing in the second half of the pilot",
}


@wording("warm-up-not-assessed")
def warm_up_not_assessed(reason: Strings, warmup_s: Number) -> str:
    """the warm-up could not be assessed (its pilot failed): 5 s were taken"""
    why = names([_NOT_ASSESSED.get(one, one) for one in strings(reason)])
    return f"the warm-up could not be assessed{f' ({why})' if why else ''}: {span(warmup_s)} were taken"
