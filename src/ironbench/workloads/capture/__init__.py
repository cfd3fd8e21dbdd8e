"""The `capture` workload: replays production work from a capture. Guide: docs/how/capture.md."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.model.driven import Driven
from ironbench.model.inside import ScriptCommand
from ironbench.model.note import Note, note
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.words import counted, grouped, in_percent, listed
from ironbench.workloads.base import Option, ServerRequirement, Workload

MODES = ("schedule", "think", "rate", "fast")
_FIGURES = {
    "capture_statements": "replayed_statements",
    "capture_rows": "replayed_rows",
    "capture_failed_again": "replayed_failures",
    "capture_failed_only_then": "replayed_recoveries",
    "capture_skipped": "replay_skipped_statements",
    "capture_keys": "replayed_keys",
    "capture_keys_missing": "replay_missing_keys",
}
"""Names of counts in the core's summary, with the names of the metrics for them."""
_LONG_ENOUGH = 0.99
"""A capture is too short for a rate and a duration if it contains less than this fraction of their transactions."""
_COUNTED_S = 0.6
"""Seconds until the server's statistics are complete. Backends report their statistics when they end; older servers do
so at most every 0.5 s."""


class Capture(Workload):
    name = "capture"
    doc = (
        "Replays a captured production workload: the recorded sessions, transactions and "
        "statements, with their parameters."
    )
    needs = ("replay",)
    warning_code = "capture-left-out"
    foreign = True
    own_length = True
    usual_warmup_s = 0.0
    looks_before = True
    options = (
        Option("file", "", "capture file that `ironbench capture` wrote", path="file"),
        Option("digest", "", "checksum of the capture's contents; ironbench sets this option"),
        Option(
            "mode",
            "schedule",
            "when statements start; schedule: at their recorded times; think: after the recorded "
            "pauses; fast: without pauses; rate: transactions start in the recorded pattern, but at "
            "the average rate of --rate",
            choices=MODES,
        ),
        Option(
            "speed",
            "1",
            "replay speed relative to the capture, e.g. 2 for twice the speed",
            lowest=0.001,
            highest=1000,
            whole=False,
        ),
        Option(
            "only",
            "",
            "replay only the transactions that match one of these filters, separated by commas; a "
            "filter is FIELD:PATTERN; the field is user, database, application or statement; the "
            "pattern may contain *",
        ),
        Option("except", "", "do not replay the transactions that match one of these filters; same syntax as `only`"),
        Option("read_only", "no", "yes: replay only transactions that do not change data", choices=("no", "yes")),
        Option(
            "sessions",
            "1",
            "number of copies of each recorded session that are replayed at the same time, with the same values",
            lowest=1,
            highest=1000,
        ),
        Option(
            "shift_time",
            "no",
            "yes: now() and similar functions in statements return the time of the capture",
            choices=("no", "yes"),
        ),
        Option(
            "keys",
            "new",
            "how statements refer to keys that an earlier statement generated; new: with the key that "
            "the server generated in the replay; recorded: with the recorded key",
            choices=("new", "recorded"),
        ),
    )

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        valid = super().validated(options)
        if valid["mode"] == "fast" and float(valid["speed"]) != 1:
            subject = written("workload.with", f"speed={valid['speed']}")
            raise InputError(subject, "has no effect with `mode=fast`, which has no pauses", "remove it")
        from ironbench.workloads.capture import selection

        selection.read(valid)
        return valid

    def identified(self, choice: Choice, engine: str) -> Choice:
        if not choice.options["file"]:
            return choice
        return replace(choice, options={**choice.options, "digest": _digest(choice.options["file"])})

    def suited(self, load: Load, options: Mapping[str, str]) -> Load:
        """Sets the number of clients if the user has not. A client replays one session at a time, so the capture
        determines the minimum number of clients."""
        if not options["file"] or load.clients > 1:
            return load
        from ironbench.workloads.capture import tape

        return replace(load, clients=tape.chosen(options).clients)

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        options = choice.options
        if not options["file"]:
            raise InputError("capture", "the capture file is missing", f"add {written('workload.with', 'file=FILE')}")
        from ironbench.workloads.capture import file, tape

        facts, chosen = file.facts(options["file"]), tape.chosen(options)
        captures = engines.capturing(facts.protocol)
        if engines.get(system.engine).traits.captures != captures:
            able = [name for name in engines.able(self.needs) if engines.get(name).traits.captures == captures]
            cause = f"contains statements of another kind of server than {system.engine}"
            raise InputError(options["file"], cause, f"replay it on: {', '.join(able)}")
        if options["shift_time"] == "yes" and not captures.shifts_time:
            cause = f"is not possible on {system.engine}"
            raise InputError(written("workload.with", "shift_time=yes"), cause, "remove it")
        if len(chosen.databases) > 1:
            cause = f"contains statements of several databases: {listed(chosen.databases)}"
            hint = f"choose one: {written('workload.with', f'only=database:{chosen.databases[0]}')}"
            raise InputError(options["file"], cause, hint)
        if options["mode"] == "think" and not facts.has_durations:
            cause = "needs the durations of statements, but the logs did not contain durations"
            raise InputError(written("workload.with", "mode=think"), cause, "use `mode=schedule` or `mode=fast`")
        self._refuse_unused(load, options)
        if load.clients < chosen.clients:
            cause = f"up to {counted(chosen.clients, 'session')} were open at the same time"
            hint = f"use {written('load.clients', chosen.clients)}, or remove this option"
            raise InputError(written("load.clients", load.clients), cause, hint)

    def _refuse_unused(self, load: Load, options: Mapping[str, str]) -> None:
        by_rate = options["mode"] == "rate"
        if by_rate and load.rate_share is not None:
            cause = f"is not possible with {written('workload.with', 'mode=rate')}, because no trial measures the peak"
            raise InputError(written("load.rate", in_percent(load.rate_share)), cause, "use transactions per second")
        if by_rate and load.rate is not None and float(options["speed"]) != 1:
            subject = written("workload.with", f"speed={options['speed']}")
            cause = f"has no effect with {written('load.rate')}, which determines the pace"
            raise InputError(subject, cause, "remove it")
        refused = {
            written("load.rate"): (load.rate is not None or load.rate_share is not None) and not by_rate,
            written("load.transactions"): load.transactions is not None,
            written("load.think_time"): load.think_time_s > 0,
            written("load.warmup", "auto" if load.warmup_auto else ""): load.warmup_s > 0 or load.warmup_auto,
        }
        for option, given in refused.items():
            if given:
                hint = f"remove it, or use {written('workload.with', 'mode=rate')}" if "rate" in option else "remove it"
                raise InputError(
                    option, "has no effect, because the capture determines which statements are replayed and when", hint
                )
        if load.curve is not None:
            raise InputError(
                written(f"load.{load.curve.of}"),
                "is a curve, but the replay of a capture needs a constant value",
                "use a fixed number",
            )

    def is_paced(self, options: Mapping[str, str]) -> bool:
        return options.get("mode") in ("schedule", "rate")

    def rests(self, options: Mapping[str, str]) -> bool:
        return options.get("mode") == "think"

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        paced = ("response_time_p99_s", "response_time_mean_s")
        return paced if self.is_paced(options) else super().leading(options)

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        """Returns None for a replay, because it ends with its last transaction. Only mode=rate has a duration."""
        return super().usual_duration_s(options) if options.get("mode") == "rate" else None

    def expected_s(self, engine: str, options: Mapping[str, str]) -> float | None:
        if not options["file"] or options["mode"] == "fast":
            return None
        from ironbench.workloads.capture import tape

        return tape.chosen(options).length_s / float(options["speed"])

    def in_parts(self, engine: str, options: Mapping[str, str]) -> bool:
        return False

    def core_work(self, engine: str, options: Mapping[str, str]) -> Mapping[str, Any]:
        if options["digest"] and _digest(options["file"]) != options["digest"]:
            raise InputError(
                options["file"],
                "was changed since these trials were planned",
                "restore the file, or start a new run or lab",
            )
        from ironbench.workloads.capture import tape

        made, chosen = tape.tape(options), tape.chosen(options)
        return {
            "kind": "capture",
            "tape": made.path,
            "clients": [{"start": start, "end": end} for start, end in made.clients],
            "kinds": [{"name": name, "statements": [text for text, _ in counted]} for name, counted in made.kinds],
            "mode": options["mode"],
            "speed": float(options["speed"]),
            "rate": chosen.transactions / max(chosen.length_s, 1e-6),
            "keys": made.slots,
        }

    def commands(self, options: Mapping[str, str]) -> Sequence[ScriptCommand]:
        if not options["file"]:
            return ()
        from ironbench.workloads.capture import tape

        return tape.tape(options).typical

    def warnings(self, engine: str, choice: Choice, protocol: str) -> list[str]:
        if not choice.options["file"]:
            return []
        from ironbench.workloads.capture import tape

        chosen = tape.chosen(choice.options)
        if not chosen.left_out:
            return []
        whole = chosen.statements + chosen.left_out
        how_many = f"{grouped(chosen.left_out)} of {counted(whole, 'statement')}"
        share = in_percent(chosen.left_out / whole)
        return [f"{how_many} ({share}) cannot be replayed; `ironbench show` lists the reasons"]

    def forecast(self, load: Load, choice: Choice) -> tuple[Note, ...]:
        if not choice.options["file"]:
            return ()
        from ironbench.workloads.capture import file

        found = []
        if choice.data is None or not choice.data.imported:
            found.append(note("capture-without-data"))
        if file.facts(choice.options["file"]).has_replaced_literals:
            found.append(note("capture-masked"))
        return (*found, *self._ends_early(load, choice.options))

    def _ends_early(self, load: Load, options: Mapping[str, str]) -> tuple[Note, ...]:
        if options["mode"] != "rate" or load.rate is None or load.duration_s is None:
            return ()
        from ironbench.workloads.capture import tape

        transactions = tape.chosen(options).transactions
        if transactions >= _LONG_ENOUGH * load.rate * load.duration_s:
            return ()
        values = {"transactions": transactions, "rate": load.rate, "duration_s": load.duration_s}
        return (note("capture-ends-early", **values, ends_s=transactions / load.rate),)

    def writes(self, options: Mapping[str, str]) -> bool:
        if not options["file"]:
            return True
        from ironbench.workloads.capture import tape

        return tape.chosen(options).writes

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        return False

    def requirement(self, options: Mapping[str, str]) -> ServerRequirement | None:
        from ironbench.workloads.capture import roles, tape

        path, chosen = options["file"], tape.chosen(options)
        if not chosen.roles:
            return None
        needed = note("capture-needs-roles", roles=list(chosen.roles))
        return ServerRequirement(needed, lambda session: roles.require(session, path, chosen))

    def set_up(self, session: Session, options: Mapping[str, str], own_server: bool) -> None:
        if own_server:
            from ironbench.workloads.capture import roles, tape

            roles.create(session, options["file"], tape.chosen(options))

    def before(self, session: Session, options: Mapping[str, str]) -> Mapping[str, int]:
        return _counted(session)

    def measured(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> Mapping[str, float]:
        from ironbench.workloads.capture import fidelity

        after = _counted(session)
        grown = {name: after[name] - count for name, count in before.items() if name in after}
        return fidelity.measured(options, grown, summary)

    def assessed(self, driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
        from ironbench.workloads.capture import fidelity

        figures = driven.summary.get("figures") or {}
        metrics = {metric: float(figures[name]) for name, metric in _FIGURES.items() if name in figures}
        skipped = metrics.get("replay_skipped_statements", 0.0)
        sent = metrics.get("replayed_statements", 0.0) + skipped
        notes = [note("replay-skipped", statements=skipped, share=skipped / sent)] if skipped else []
        return metrics, (*notes, *fidelity.notes(driven.metrics, float(driven.summary.get("elapsed_s", 0.0))))


def _counted(session: Session) -> dict[str, int]:
    """Returns the server's counters. First waits until they include the work of the trial (`_COUNTED_S`)."""
    from ironbench.workloads.capture import marks

    time.sleep(_COUNTED_S)
    return marks.counted(session)


def is_capture(path: str) -> bool:
    """Returns whether the file exists and begins like a Parquet file, or like a capture that has not been finished."""
    try:
        with Path(path).open("rb") as opened:
            if opened.read(4) == b"PAR1":
                return True
    except OSError:
        return False
    from ironbench.workloads.capture import file

    return file.is_partial(path)


def _digest(path: str) -> str:
    """Returns a digest of the contents of a file. Raises InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
    except OSError as error:
        raise InputError(
            path, error.strerror or str(error), "give the path of a capture that `ironbench capture` wrote"
        ) from None


WORKLOAD = Capture()
