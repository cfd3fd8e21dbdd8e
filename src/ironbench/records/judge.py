"""Judges a trial: determines the trial's status and warnings by the rules in docs/reference/statuses.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbench.engines.administration import AS_PARAMETER, DENIED
from ironbench.engines.base import Engine
from ironbench.engines.durability import losses
from ironbench.errors import IronbenchError
from ironbench.host.child_connection import CANCELLED
from ironbench.model.driven import Driven, driving_cpu_s, scheduled
from ironbench.model.judging_limits import (
    CLIENT_SATURATED,
    CUT_OFF,
    FAILED_FLAGGED,
    FAILED_INVALID,
    FAITHFUL_LATENESS,
    FAITHFUL_LOAD,
    LATENCY_LATE_SHARE,
    OUR_SHARE,
    OWN_DELAY,
    PROFILE_LOST,
    PROFILE_UNRESOLVED,
    RATE_KEPT,
    REARMED,
    UNEVEN,
    UNEVEN_FROM,
)
from ironbench.model.note import Note, note
from ironbench.model.observation import Observation
from ironbench.model.profile import OUTSIDE, SampledProfile
from ironbench.model.record import (
    CAN_LOSE_DATA,
    CLIENTS_CUT_OFF,
    CLIENTS_LOST,
    CLIENTS_UNEVEN,
    CONNECTIONS_LOST,
    EMULATED,
    EMULATION_LIMIT,
    ENGINE_DIED,
    LATENCY_LATE,
    LOOP_DELAYED,
    RATE_NOT_KEPT,
    RELAY_SATURATED,
    STOPPED_ON_LOSS,
    SUSPICIOUS,
    Budget,
    Status,
)
from ironbench.model.system import Load, System
from ironbench.records.measures import own_delay_share, profile_lost_share
from ironbench.trial.observe import late
from ironbench.trial.observe.disturbance import DisturbanceShares
from ironbench.trial.observe.relay import ADDED
from ironbench.words import counted
from ironbench.workloads import rate_change


def warnings(
    system: System, load: Load, driven: Driven, observation: Observation, budget: Budget | None, cycles: bool
) -> tuple[Note, ...]:
    """Returns all warnings of a trial. The trial is flagged if the code of a warning is in `SUSPICIOUS`.

    `cycles`: whether the trial must cover at least two checkpoints if it wrote data.
    """
    summary = driven.summary
    if not summary:
        return ()
    results = [
        *_failures(load, driven),
        *_client(load, driven),
        *_rate(load, driven),
        *_cut_off(load, driven),
        *_uneven(load, driven),
        *_connection_losses(load, driven),
        *_steadiness(load, driven),
    ]
    results += [*_too_few_workers(load, driven), *_relay(system, observation)]
    if budget is not None:
        results += [*_unseen(system, observation), *_cpu_taken_by_others(system, observation, budget), *_ours(budget)]
    if cycles and wrote(driven, observation) is not False:
        results += _checkpoints(observation, summary["elapsed_s"])
    results += [*_late_counts(observation, summary["elapsed_s"]), *_emulation(system, observation, budget)]
    if summary.get("samples_dropped"):
        results.append(note("samples-dropped", samples=int(summary["samples_dropped"])))
    results += _profile(driven)
    return tuple(results)


def _profile(driven: Driven) -> list[Note]:
    """Returns notes about an incomplete profile."""
    if (profile := driven.profile) is None:
        return []
    results = []
    if (lost := profile_lost_share(profile)) > PROFILE_LOST:
        results.append(note("profile-lost", share=lost))
    if profile.unresolved_share > PROFILE_UNRESOLVED:
        outside = _outside_share(profile)
        results.append(note("profile-unresolved", share=profile.unresolved_share, outside=outside))
    return results


def _outside_share(profile: SampledProfile) -> float:
    """Returns the fraction of the frames, weighted by samples, that are outside every program and library. The usual
    cause is a program without unwind tables and without frame pointers."""
    stacks = [(one.frames, one.samples) for one in profile.stacks]
    every = sum(len(frames) * samples for frames, samples in stacks)
    return sum(frames.count(OUTSIDE) * samples for frames, samples in stacks) / every if every else 0.0


_MOST_WORDS = 300
NO_LOG_BYTES = 16
"""If less WAL than this is written per transaction, the transactions count as read-only. The shortest WAL record has 24
bytes."""
MAINTENANCE = 0.01
MAINTENANCE_LEAST = 10
"""Limits for the number of writing transactions: a fraction of all transactions, and a number. The larger limit
applies. If not more transactions wrote, they are attributed to the server itself (autovacuum, statistics), and the
workload counts as read-only."""
_CANCELLED = frozenset({"over-limit", CANCELLED})
"""Error codes of cancelled queries. The workload cancels a query at its time limit, or when the trial is stopped."""
ABORTED = "aborted"
"""Code of the cause of a trial that was ended by an error."""
STOPPED_ON_ERROR = "stopped-on-error"
"""Code of the warning about a trial that was ended by its first error."""


def status(driven: Driven, warnings: tuple[Note, ...]) -> tuple[Status, tuple[Note, ...]]:
    """Returns the trial's status, and the causes if it is invalid, failed or aborted. A flagged trial has no causes,
    because its warnings say why it is flagged."""
    summary = driven.summary
    if driven.storage_died:
        return Status.VOIDED, (note("device-died", how=driven.storage_died),)
    if driven.failure:
        code, error = driven.failure.code, driven.failure.values.get("error", "")
        unspecific = code == IronbenchError.code
        if driven.alive:
            # PostgreSQL survives when the kernel kills the process of a connection for lack of memory.
            with_kill = unspecific and driven.last_words
            return Status.FAILED, (_died(driven, code, error) if with_kill else driven.failure,)
        return Status.VOIDED, (_died(driven, ENGINE_DIED if unspecific else code, error),)
    if driven.cause is not None and driven.alive:
        return Status.VOIDED, (driven.cause,)
    if summary["aborted"] or not driven.alive:
        code = ABORTED if summary["cause"] else ENGINE_DIED
        return Status.VOIDED, (_died(driven, code, summary["cause"]),)
    failed = [check for check in driven.checks if not check.passed]
    if failed:
        return Status.VOIDED, tuple(
            note("check-failed", check=one.name, expected=one.expected, actual=one.actual) for one in failed
        )
    if summary["cut_short"]:
        return Status.CUT_SHORT, _ended(summary) or (note("interrupted"),)
    worst = _worst(driven)
    too_many = (worst.noted("transactions-failed"),) if worst else ()
    if summary["transactions"] == 0:
        return Status.VOIDED, _ended(summary) or (note("nothing-finished", unit=driven.counts[0]), *too_many)
    if worst is not None and worst.share > FAILED_INVALID:
        return Status.VOIDED, too_many
    return (Status.SUSPECT if any(one.code in SUSPICIOUS for one in warnings) else Status.OK), ()


def _ended(summary: Mapping[str, Any]) -> tuple[Note, ...]:
    """Returns the cause that the drive loop reported. Returns an empty tuple if it reported none."""
    return (note(ABORTED, error=summary["cause"]),) if summary["cause"] else ()


def _died(driven: Driven, code: str, error: str) -> Note:
    """Returns a cause with the error and the engine's last message. The message is left out if the error already
    contains it, and is shortened to keep records small."""
    words = driven.last_words[:_MOST_WORDS]
    return note(code, error=error, last_words="" if words in error else words)


@dataclass(frozen=True, slots=True)
class _Failed:
    """Numbers of failures, of one script or of all scripts together."""

    failed: int
    ended: int
    counts: tuple[str, str]
    script: str
    """Name of the script. Empty for all scripts together."""
    first: str

    @property
    def share(self) -> float:
        return self.failed / self.ended

    def noted(self, code: str) -> Note:
        one, many = self.counts
        values = {"failed": self.failed, "ended": self.ended, "share": self.share, "one": one, "many": many}
        return note(code, **values, script=self.script, first=self.first)


def _worst(driven: Driven) -> _Failed | None:
    """Returns the failures of the script with the highest fraction of failures, or of all scripts together if this
    fraction is higher. Returns None if there were no failures."""
    summary = driven.summary
    scripts = summary.get("scripts", [])
    failed = summary.get("failed", 0)
    if driven.drives_itself:
        # A workload that drives its own load has error codes for cancelled queries. These are not failures of the
        # engine.
        failed = sum(count for error, count in summary["errors"].items() if error not in _CANCELLED)
    first = next((script["first_failure"] for script in scripts if script.get("first_failure")), _codes(summary))
    parts = [_Failed(failed, failed + summary["transactions"], driven.counts, "", first)]
    if len(scripts) > 1:
        parts += [
            _Failed(
                one["failed"],
                one["failed"] + one["transactions"],
                driven.counts,
                one["name"],
                one["first_failure"],
            )
            for one in scripts
            if "first_failure" in one
        ]
    return max((part for part in parts if part.failed), key=lambda part: part.share, default=None)


def _codes(summary: Mapping[str, Any]) -> str:
    return ", ".join(f"{code} ({counted(count, 'time')})" for code, count in sorted(summary.get("errors", {}).items()))


def _failures(load: Load, driven: Driven) -> list[Note]:
    """Returns warnings about failures inside the measured window, and during warm-up or draining."""
    summary = driven.summary
    if summary.get("stopped_on_error"):
        reason = "other"
        # `errors` contains only errors in the window. The first error usually occurs in the warm-up, so `cause` is
        # examined too.
        if DENIED in summary["errors"] or f"SQLSTATE {DENIED}" in summary["cause"]:
            reason = "denied"
        elif "capture_statements" in (summary.get("figures") or {}):
            reason = "replay"
        elif load.protocol != "simple" and any(f"SQLSTATE {code}" in summary["cause"] for code in AS_PARAMETER):
            reason = "parameter"
        return [note(STOPPED_ON_ERROR, reason=reason)]
    warnings = []
    if (worst := _worst(driven)) is not None:
        code = "transactions-failed" if worst.share > FAILED_FLAGGED else "few-transactions-failed"
        warnings.append(worst.noted(code))
    scripts = [one for one in summary.get("scripts", []) if "failed_in_all" in one]
    failed = sum(one["failed_in_all"] - one["failed"] for one in scripts)
    ended = failed + sum(one["completed"] - one["transactions"] for one in scripts)
    if failed and failed / ended > FAILED_FLAGGED:
        first = next(one["first_failure"] for one in scripts if one["failed_in_all"] > one["failed"])
        warnings.append(_Failed(failed, ended, driven.counts, "", first).noted("failed-outside-window"))
    return warnings


def _rate(load: Load, driven: Driven) -> list[Note]:
    summary = driven.summary
    if load.rate is None or not summary["elapsed_s"]:
        return []
    # Without a schedule, the summary does not contain the number of transactions that were due.
    due = float(summary.get("due") or summary["elapsed_s"] * load.rate)
    stopped = summary.get("cut_short") or summary.get("aborted")
    if load.duration_s and summary["elapsed_s"] < RATE_KEPT * load.duration_s and not stopped:
        # The work has ended, for example at the end of a capture. All of it was finished, but perhaps more slowly than
        # at the target rate.
        due = max(due, summary["elapsed_s"] * load.rate)
    waiting = summary["not_started"] + summary["unfinished"]
    longest_s = summary.get("longest_wait_s", summary["elapsed_s"])
    served = waiting if longest_s <= (1 - RATE_KEPT) * summary["elapsed_s"] else 0
    kept = scheduled(summary) / due
    if scheduled(summary) + served >= RATE_KEPT * due:
        return []
    # The note contains the length of the warm-up: transactions that were scheduled in the warm-up may still be waiting
    # too.
    target = {"curve": load.curve.text} if load.curve else {"rate": load.rate}
    seen = {
        "finished": kept,
        "waiting": waiting,
        "longest_wait_s": summary.get("longest_wait_s", 0.0) if waiting else 0.0,
    }
    return [note(RATE_NOT_KEPT, **target, **seen, warmup_s=load.warmup_s)]


def _connection_losses(load: Load, driven: Driven) -> list[Note]:
    """Warns of connections that clients lost while the trial continued."""
    summary = driven.summary
    ended = summary.get("aborted") and driven.alive and load.on_error == "stop" and not load.reconnect_on_loss
    if ended and summary.get("loss_cause"):
        return [note(STOPPED_ON_LOSS)]
    if clients := summary.get("clients_lost", 0):
        return [note(CLIENTS_LOST, lost=clients, clients=load.clients, first=summary["loss_cause"])]
    if connections := summary.get("connections_lost", 0):
        return [note(CONNECTIONS_LOST, lost=connections, first=summary["loss_cause"])]
    return []


def _cut_off(load: Load, driven: Driven) -> list[Note]:
    """Warns of clients that, at the end of the window, had been waiting longer than nearly all transactions took.
    Throughput and service times do not include the transactions of these clients."""
    summary = driven.summary
    spent_s = summary["elapsed_s"] * load.clients
    share = summary.get("cut_off_s", 0.0) / spent_s if spent_s else 0.0
    if share <= CUT_OFF:
        return []
    one, many = driven.counts
    found = {"cut_off": summary["cut_off"], "longest_wait_s": summary["longest_wait_s"], "share": share}
    return [note(CLIENTS_CUT_OFF, **found, one=one, many=many)]


def _uneven(load: Load, driven: Driven) -> list[Note]:
    """Warns if some clients completed far more transactions than others. Lost clients have their own warning, under a
    load curve, the number of active clients changes, and the sessions of a capture are of different lengths."""
    each = driven.summary.get("per_client")
    if not each or each["clients"] < 2 or each["transactions_mean"] < UNEVEN_FROM:
        return []
    replayed = "capture_statements" in (driven.summary.get("figures") or {})
    if load.curve is not None or replayed or driven.summary.get("clients_lost"):
        return []
    relative = each["transactions_stdev"] / each["transactions_mean"]
    return [note(CLIENTS_UNEVEN, mean=each["transactions_mean"], relative=relative)] if relative > UNEVEN else []


def _own_delay(driven: Driven) -> list[Note]:
    """Warns if the drive loop itself increased the response times considerably."""
    share, rearms = own_delay_share(driven) or 0.0, driven.summary.get("receive_rearms", 0)
    if share <= OWN_DELAY and rearms <= REARMED * driven.summary["transactions"]:
        return []
    return [note(LOOP_DELAYED, share=share, rearms=rearms)]


def _too_few_workers(load: Load, driven: Driven) -> list[Note]:
    """Warns if the trial ran with fewer workers because machines were lost in earlier trials. If a machine is lost
    during the trial, the trial is invalid."""
    if not 0 < len(driven.workers) < load.workers or driven.summary["aborted"]:
        return []
    return [note("fewer-workers", workers=len(driven.workers), requested=load.workers)]


def _client(load: Load, driven: Driven) -> list[Note]:
    elapsed_s = driven.summary["elapsed_s"]
    if driven.inside or driven.drives_itself:
        # The client threads also run the engine, or a workload that drives its own load. They are expected to be busy.
        return []
    delayed = _own_delay(driven)
    if driven.workers:
        return [*_workers(driven), *delayed]
    cores = driving_cpu_s(driven.summary) / elapsed_s if elapsed_s else 0.0
    by_driver = driven.summary.get("io") == "driver"
    busy = cores if by_driver else cores / load.threads
    if busy <= CLIENT_SATURATED:
        return delayed
    if by_driver:
        return [note("client-saturated", cores=cores), *delayed]
    return [note("client-saturated", busy=busy, threads=load.threads, clients=load.clients), *delayed]


def _workers(driven: Driven) -> list[Note]:
    """Warns of workers that are the bottleneck: their threads are busy, or they run on another machine and that machine
    is busy."""
    full = [one for one in driven.workers if one.threads_cpu_share > CLIENT_SATURATED]
    crowded = [one for one in driven.workers if not one.here and (one.machine_cpu_share or 0.0) > CLIENT_SATURATED]
    named = tuple(f"{one.number} ({one.host})" for one in dict.fromkeys((*full, *crowded)))
    if not named:
        return []
    worst = max([one.threads_cpu_share for one in full] + [one.machine_cpu_share or 0.0 for one in crowded])
    return [note("client-saturated", workers=named, busy=worst, which="threads" if full else "machines")]


def _unseen(system: System, observation: Observation) -> list[Note]:
    if system.dsn is None or system.server is not None or "engine_cpu_s" in observation.metrics:
        return []
    return [note("server-unseen")]


def _cpu_taken_by_others(system: System, observation: Observation, budget: Budget) -> list[Note]:
    """Warns of CPU time used by other programs and virtual machines. If the server's processes are not visible, only
    steal time is considered, because the CPU time of the server would count as time of other programs."""
    if system.dsn is not None and "engine_cpu_s" not in observation.metrics:
        taken = DisturbanceShares(0.0, budget.steal)
    else:
        taken = DisturbanceShares(budget.other, budget.steal, "others_cpu_cores" in observation.metrics)
    if not taken.disturbs:
        return []
    return [note("cpu-taken", share=taken.share, programs=taken.programs, steal=taken.steal)]


def _ours(budget: Budget) -> list[Note]:
    used = 1.0 - budget.idle - budget.steal
    each = {name: getattr(budget, name) for name in ("client", "observers", "emulation", "relay")}
    ours = sum(each.values()) / used if used > 0 else 0.0
    if ours <= OUR_SHARE:
        return []
    parts = tuple(name for name, share in each.items() if share > 0)
    return [note("own-cpu-share", share=ours, parts=parts)]


def _relay(system: System, observation: Observation) -> list[Note]:
    """Warns of a relay that was busy, or that added clearly more latency than declared."""
    metrics, asked_s = observation.metrics, system.latency_s
    if asked_s is None:
        return []
    busy, added_s = metrics.get("relay_busiest_thread_share", 0.0), metrics.get(ADDED, 0.0)
    warnings = [note(RELAY_SATURATED, busy=busy)] if busy > CLIENT_SATURATED else []
    if added_s > asked_s * (1 + LATENCY_LATE_SHARE):
        warnings.append(note(LATENCY_LATE, declared_s=asked_s, added_s=added_s))
    return warnings


def _emulation(system: System, observation: Observation, budget: Budget | None) -> list[Note]:
    """Returns a note if devices were emulated. Also returns a warning if the emulation was overloaded or too slow."""
    late = {name: value for name, value in observation.metrics.items() if name.startswith("emulation_late_share")}
    models = tuple(dict.fromkeys(device.model for device in system.layout.devices))
    # If the kernel passes the requests of a device on, there are no counters. Such a device is recognised by the CPU
    # time of its process.
    if not (late or models or "emulation_cpu_cores" in observation.metrics):
        return []
    cpu = {"cpu_share": budget.emulation} if budget is not None else {}
    warnings = [note(EMULATED, models=models, **cpu)]
    load = observation.metrics.get("emulation_load_share", 0.0)
    worst = max(late.values(), default=0.0)
    if load > FAITHFUL_LOAD or worst > FAITHFUL_LATENESS:
        warnings.append(note(EMULATION_LIMIT, load=load, late=worst))
    return warnings


def durability(engine: Engine | None, settings: Mapping[str, str]) -> tuple[Note, ...]:
    """Warns of settings with which a crash can lose data. `engine`: None if this version does not know the engine."""
    found = losses(engine.traits.hazards, settings) if engine else ()
    return (note(CAN_LOSE_DATA, settings=found),) if found else ()


def wrote(driven: Driven, observation: Observation) -> bool | None:
    """Returns whether the transactions wrote data, according to the server's counters. Returns None if the counters
    were not observed."""
    written = observation.metrics.get("writing_transactions_per_s")
    log_bytes = observation.metrics.get("wal_bytes_per_transaction")
    if log_bytes is not None and log_bytes < NO_LOG_BYTES:
        return False
    if written is None:
        return None if log_bytes is None else True
    summary = driven.summary
    return bool(written * summary["elapsed_s"] > max(MAINTENANCE_LEAST, MAINTENANCE * summary["transactions"]))


def _late_counts(observation: Observation, elapsed_s: float) -> list[Note]:
    found = late.late_note(observation, elapsed_s)
    return [found] if found else []


def _checkpoints(observation: Observation, elapsed_s: float) -> list[Note]:
    done = observation.metrics.get("checkpoints")
    if done is None or done >= 2:
        return []
    return [note("short-of-two-checkpoints", checkpoints=done, elapsed_s=elapsed_s)]


def _steadiness(load: Load, driven: Driven) -> list[Note]:
    """Warns if the throughput changed during the trial. Does not warn if the load has a rate or a curve, because the
    throughput is then prescribed."""
    column = driven.timeline.get("transactions", b"")
    if load.rate is not None or load.curve is not None or not rate_change.is_long_enough(column):
        return []
    # If each client runs a fixed number of transactions, only the slowest clients still run at the end. The last tenth
    # of the trial is therefore ignored.
    share = 1.0 if load.transactions is None else 0.9
    change = rate_change.changed(column, driven.summary["elapsed_s"], share)
    return [note(rate_change.CODE, **change)] if change else []
