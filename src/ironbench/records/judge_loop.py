"""Judges the transactions that the drive loop left unfinished, and the delay that it added to response times."""

from __future__ import annotations

from ironbench.model.driven import Driven, scheduled
from ironbench.model.judging_limits import CUT_OFF, OWN_DELAY, RATE_KEPT, REARMED
from ironbench.model.note import Note, note
from ironbench.model.record import (
    CLIENTS_CUT_OFF,
    CLIENTS_LOST,
    CONNECTIONS_LOST,
    LOOP_DELAYED,
    RATE_NOT_KEPT,
    STOPPED_ON_LOSS,
)
from ironbench.model.system import Load
from ironbench.records.measures import own_delay_share


def rate(load: Load, driven: Driven) -> list[Note]:
    summary = driven.summary
    if load.rate is None or not summary["elapsed_s"]:
        return []
    # A summary without its own schedule has only the rate.
    due = float(summary.get("due") or summary["elapsed_s"] * load.rate)
    waiting = summary["not_started"] + summary["unfinished"]
    longest_s = summary.get("longest_wait_s", summary["elapsed_s"])
    served = waiting if longest_s <= (1 - RATE_KEPT) * summary["elapsed_s"] else 0
    kept = scheduled(summary) / due
    if scheduled(summary) + served >= RATE_KEPT * due:
        return []
    # Transactions scheduled in the warm-up wait as well.
    target = {"curve": load.curve.text} if load.curve else {"rate": load.rate}
    seen = {
        "finished": kept,
        "waiting": waiting,
        "longest_wait_s": summary.get("longest_wait_s", 0.0) if waiting else 0.0,
    }
    return [note(RATE_NOT_KEPT, **target, **seen, warmup_s=load.warmup_s)]


def losses(load: Load, driven: Driven) -> list[Note]:
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


def cut_off(load: Load, driven: Driven) -> list[Note]:
    """Warns of clients that were still waiting at the end, for longer than nearly all transactions took: throughput and
    service times do not include these transactions."""
    summary = driven.summary
    spent_s = summary["elapsed_s"] * load.clients
    share = summary.get("cut_off_s", 0.0) / spent_s if spent_s else 0.0
    if share <= CUT_OFF:
        return []
    one, many = driven.counts
    found = {"cut_off": summary["cut_off"], "longest_wait_s": summary["longest_wait_s"], "share": share}
    return [note(CLIENTS_CUT_OFF, **found, one=one, many=many)]


def own_delay(driven: Driven) -> list[Note]:
    """Warns if the drive loop itself added much to the response times."""
    share, rearms = own_delay_share(driven) or 0.0, driven.summary.get("receive_rearms", 0)
    if share <= OWN_DELAY and rearms <= REARMED * driven.summary["transactions"]:
        return []
    return [note(LOOP_DELAYED, share=share, rearms=rearms)]
