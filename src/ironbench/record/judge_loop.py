"""Judges what the drive loop left undone at the end of a trial, and what it added to response times itself."""

from __future__ import annotations

from ironbench import units
from ironbench.model.driven import Driven, scheduled
from ironbench.model.record import (
    CLIENTS_CUT_OFF,
    CLIENTS_LOST,
    CONNECTIONS_LOST,
    LOOP_DELAYED,
    RATE_NOT_KEPT,
    STOPPED_ON_LOSS,
    Warning,
)
from ironbench.model.system import Load
from ironbench.record.measures import own_delay_share
from ironbench.words import counted, grouped, in_percent

RATE_KEPT = 0.98
"""Share of the transactions due that must be done. Those that wait at the end count as done if the longest wait is no
longer than the rest of the window: some are being served at any instant."""
CUT_OFF = 0.01
"""Share of the clients' time."""
OWN_DELAY = 0.25
"""Share of the service time that replies wait for the drive loop."""
REARMED = 0.01
"""Receives that found all buffers in use, for each transaction."""


def rate(load: Load, driven: Driven) -> list[Warning]:
    summary = driven.summary
    if load.rate is None or not summary["elapsed_s"]:
        return []
    # A summary without a schedule of its own has the rate alone.
    due = float(summary.get("due") or summary["elapsed_s"] * load.rate)
    waiting = summary["not_started"] + summary["unfinished"]
    longest_s = summary.get("longest_wait_s", summary["elapsed_s"])
    served = waiting if longest_s <= (1 - RATE_KEPT) * summary["elapsed_s"] else 0
    kept = scheduled(summary) / due
    if scheduled(summary) + served >= RATE_KEPT * due:
        return []
    # Those due in the warm-up wait, too.
    since = " due since the warm-up began" if load.warmup_s else ""
    done = (
        f"{in_percent(kept, limits=(RATE_KEPT,))} of it was finished, {grouped(waiting)}{since} were waiting at the end"
    )
    if "longest_wait_s" in summary and waiting:
        done += f", for up to {units.span(longest_s)}"
    asked = f"the curve {load.curve.text}" if load.curve else f"the rate of {units.rate(load.rate)}"
    text = f"{asked} was not kept: {done}"
    return [Warning(RATE_NOT_KEPT, text)]


def losses(load: Load, driven: Driven) -> list[Warning]:
    """Connections that clients lost while the trial continued."""
    summary = driven.summary
    ended = summary["aborted"] and driven.alive and load.on_error == "stop" and not load.reconnect_on_loss
    if ended and summary.get("loss_cause"):
        text = "a lost connection ended the trial: with --on-error continue only its client ends"
        text = f"{text}, with --reconnect-on-loss it opens a new one (load.on_error, load.reconnect_on_loss in a lab)"
        return [Warning(STOPPED_ON_LOSS, text)]
    if clients := summary.get("clients_lost", 0):
        many = f"{grouped(clients)} of {counted(load.clients, 'client')} lost the connection and ended"
        text = f"{many}, so that the load was lower than planned; the first: {summary['loss_cause']}"
        return [Warning(CLIENTS_LOST, text)]
    if connections := summary.get("connections_lost", 0):
        many = f"{counted(connections, 'connection')} of clients {'was' if connections == 1 else 'were'} lost"
        return [Warning(CONNECTIONS_LOST, f"{many}; the first: {summary['loss_cause']}")]
    return []


def cut_off(load: Load, driven: Driven) -> list[Warning]:
    """Clients that waited at the end for longer than nearly all transactions took: throughput and service times show
    nothing of them."""
    summary = driven.summary
    spent_s = summary["elapsed_s"] * load.clients
    share = summary.get("cut_off_s", 0.0) / spent_s if spent_s else 0.0
    if share <= CUT_OFF:
        return []
    many = counted(summary["cut_off"], *driven.counts)
    text = (
        f"{many} had not ended when the window closed and had run for up to {units.span(summary['longest_wait_s'])}, "
        f"longer than 99 % of those that ended; they took {in_percent(share, limits=(CUT_OFF,))} of the clients' time. "
        "Look for locks that they waited for"
    )
    return [Warning(CLIENTS_CUT_OFF, text)]


def own_delay(driven: Driven) -> list[Warning]:
    """What the drive loop itself adds to response times, where that is much."""
    share, rearms = own_delay_share(driven) or 0.0, driven.summary.get("receive_rearms", 0)
    causes = []
    if share > OWN_DELAY:
        much = in_percent(share, limits=(OWN_DELAY,))
        causes.append(f"replies waited for ironbench's own loop during {much} of the service time")
    if rearms > REARMED * driven.summary["transactions"]:
        causes.append(f"{counted(rearms, 'reply', 'replies')} found all receive buffers in use")
    if not causes:
        return []
    return [Warning(LOOP_DELAYED, f"{' and '.join(causes)}; use more --threads")]
