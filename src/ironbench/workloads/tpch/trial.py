"""Runs one trial: generates refresh sets, validates answers, runs the streams in the measured window, then records
query plans."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ironbench import engines
from ironbench.errors import EngineDiedError, FailureError
from ironbench.host.child_connection import CANCELLED
from ironbench.model.note import Note, note
from ironbench.model.record import Check
from ironbench.model.session import WorkConnection
from ironbench.model.work import Outcome, Window, Work
from ironbench.workloads.base import Dataset
from ironbench.workloads.tally import Tally
from ironbench.workloads.tpch import figures, refresh, refresh_position, streams, texts
from ironbench.workloads.tpch.answers import ROW_COUNTS, QueryAnswer
from ironbench.workloads.tpch.refresh import Refresh, RefreshSet
from ironbench.workloads.tpch.refresh_position import Position
from ironbench.workloads.tpch.streams import OVER_LIMIT, Query, StepRun, Stream, StreamStep
from ironbench.workloads.tpch.texts import QueryPlanText
from ironbench.workloads.tpch.trial_choices import TrialChoices, course
from ironbench.workloads.tpch.validation import AnsweredQuery
from ironbench.workloads.tpch.validator import Validated, Validator

_REFRESH_STREAM = -1
_SLOWER = 3.0
"""If the engine measures each step of a query's plan, the query takes longer. The query's limit is then this multiple
of its normal limit."""


@dataclass(frozen=True, slots=True)
class StreamGroups:
    """The streams of a trial. `power`: the stream of the power test, or the single stream. `through`: the streams of
    the throughput test, with the refresh stream last."""

    power: Stream | None
    through: tuple[Stream, ...]

    @property
    def all(self) -> tuple[Stream, ...]:
        return (*((self.power,) if self.power else ()), *self.through)

    @property
    def queries(self) -> list[StepRun]:
        return [one for stream in self.all for one in stream.ran if one.name.startswith("q")]


def driven(work: Work, dataset: Dataset) -> Outcome:
    """Runs the trial. Raises FailureError or EngineDiedError."""
    asked = course(work.choice.options, work.load.seed)
    at = refresh_position.read(work.session, refresh_position.loaded_at(work.session, dataset.name))
    validator = Validator(work, asked, dataset, at)
    cold = work.load.cache == "cold"
    # If caches must be cold, answers are validated after the measurement. Otherwise, the validation would fill the
    # host's cache.
    validated = Validated() if cold else validator.validated()
    if not all(check.passed for check in validated.checks):
        return Outcome(0, checks=validated.checks, answers=validated.answers, cause=validated.cause)
    sets = _prepared(work, dataset, asked, at)
    tests, tally, elapsed_s = _measured(work, asked, sets)
    if sets and all(not one.error for stream in tests.all for one in stream.ran) and not work.stopping():
        refresh_position.write(work.session, replace(at, next=sets[-1].number + 1, past=sets[-1].number + 1))
    explained = [] if work.stopping() else _explained(work, asked, tests)
    if cold:
        validated = validator.validated(changed=bool(sets))
    outcome = tally.outcome(
        elapsed_s,
        metrics=figures.metrics(asked, tests.power, tests.through)
        | {name: value for one in explained for name, value in one.metrics().items()},
        files=_files(tests.all, explained),
        checks=(*validated.checks, *_row_counts(asked, tests)),
        facts=_facts(asked, sets, work),
        warnings=(*validated.warnings, *_unfinished(tests)),
        inside=engines.get(work.session.engine).can("in client"),
    )
    # There are no time lines. Queries are too long and too different for rates per second.
    return replace(outcome, answers=validated.answers, timeline={}, seconds={})


def rehearsed(work: Work) -> Outcome:
    """Runs the queries of the power test once, without refresh functions, to warm the caches."""
    asked = replace(course(work.choice.options, work.load.seed), test="stream")
    _, tally, elapsed_s = _measured(work, asked, [])
    return tally.outcome(elapsed_s)


def _prepared(work: Work, dataset: Dataset, asked: TrialChoices, at: Position) -> list[RefreshSet]:
    """Returns the refresh sets of this trial. If an earlier trial started sets but did not complete them, first
    completes those."""
    begun = list(at.interrupted)
    first = at.past
    numbers = list(range(first, first + asked.refresh_sets))
    size = int(work.choice.options["refresh_orders"])
    if not numbers and not begun:
        return []
    made = refresh.made(dataset.generator, [*begun, *numbers], size, Path(work.folder))
    if begun:
        with contextlib.closing(work.session.line()) as line:
            for one in made[: len(begun)]:
                refresh.again(line, one, engines.get(work.session.engine).traits.dialect)
    refresh_position.write(work.session, replace(at, next=first, past=first + len(numbers)))
    return made[len(begun) :]


def _measured(work: Work, asked: TrialChoices, sets: Sequence[RefreshSet]) -> tuple[StreamGroups, Tally, float]:
    tally = Tally("query")
    with contextlib.ExitStack() as closing:
        tests = _tests(work, asked, sets, closing)
        with work.window() as window, contextlib.ExitStack() as inside:
            # The child processes of library engines end inside the window, so that their CPU time is counted.
            inside.push(closing.pop_all())
            began_s = _window_start_s(window)
            for group in ([tests.power] if tests.power else [], tests.through):
                _run(work, asked, tests, group)
        elapsed_s = window.elapsed_s
    for one in tests.queries:
        if one.error:
            tally.failed(one.answered_s - began_s, one.error)
        else:
            tally.done(one.name, one.submitted_s - began_s, one.answered_s - began_s)
    return tests, tally, elapsed_s


def _window_start_s(window: Window) -> float:
    """Returns the start of the window as `time.perf_counter`, like the times of streams."""
    return time.perf_counter() - window.elapsed_s


def _run(work: Work, asked: TrialChoices, tests: StreamGroups, group: Sequence[Stream]) -> None:
    if work.stopping() or not group:
        return
    planned = asked.planned()

    def show(_: int, running: str) -> None:
        work.show(min(1.0, len(tests.queries) / planned), running)

    streams.run(group, work.stopping, show)


def _tests(work: Work, asked: TrialChoices, sets: Sequence[RefreshSet], closing: contextlib.ExitStack) -> StreamGroups:
    """Creates the streams and opens their connections. Called before the window starts."""

    def line() -> WorkConnection:
        return closing.enter_context(contextlib.closing(work.session.line(work.system.server_cpus or ())))

    def queries(stream: int) -> list[StreamStep]:
        own = line()
        return [
            Query(texts.name(query), sql, own, asked.limit_s)
            for query, sql in asked.statements(stream, work.session.engine)
        ]

    refreshing = line() if sets else None
    dialect = engines.get(work.session.engine).traits.dialect
    power = None
    if asked.test != "throughput":
        steps = queries(0)
        if asked.has_power and refreshing is not None:
            steps = [Refresh("rf1", sets[0], refreshing, dialect), *steps]
            steps.append(Refresh("rf2", sets[0], refreshing, dialect))
        power = Stream(0, steps)
    through: list[Stream] = []
    if asked.has_throughput and refreshing is not None:
        through = [Stream(number, queries(number)) for number in range(1, asked.streams + 1)]
        own = sets[asked.has_power :]
        both = [Refresh(name, one, refreshing, dialect) for one in own for name in ("rf1", "rf2")]
        through.append(Stream(_REFRESH_STREAM, both))
    return StreamGroups(power, tuple(through))


def _explained(work: Work, asked: TrialChoices, tests: StreamGroups) -> list[QueryPlanText]:
    """Returns the plans that the engine reported.

    A query that gave no answer is not executed again for its plan, because it would fail again. If the engine refuses a
    plan, the trial still succeeds, because all measurements are complete.
    """
    depth, engine = work.choice.options["plans"], work.session.engine
    if depth == "no":
        return []
    stream = 1 if asked.test == "throughput" else 0
    dialect, plans = engines.get(engine).traits.dialect, dict[int, QueryAnswer]()
    unanswered = {one.name for one in tests.queries if one.error}
    with contextlib.closing(work.session.line(work.system.server_cpus or ())) as line:
        steps = []
        for query, sql in sorted(asked.statements(stream, engine)):
            measured = depth == "measured" and texts.name(query) not in unanswered
            limit_s = _SLOWER * asked.limit_s if measured else math.inf
            steps.append(AnsweredQuery(query, dialect.explain(measured=measured) + sql, line, limit_s, plans))
        try:
            streams.run([Stream(0, steps)], work.stopping, lambda *_: None)
        except EngineDiedError:
            raise
        except FailureError:
            pass  # an error without an SQLSTATE ends the stream, but the plans before it are kept
    return [texts.explained(engine, query, plan.rows) for query, plan in sorted(plans.items())]


def _row_counts(asked: TrialChoices, tests: StreamGroups) -> tuple[Check, ...]:
    """Checks row counts that the specification defines. Databases below scale factor 1 may lack some of the rows."""
    if asked.scale < 1:
        return ()
    wrong = [
        Check(f"rows of {one.name}", False, str(expected), str(one.rows))
        for one in tests.queries
        if not one.error and (expected := ROW_COUNTS.get(int(one.name[1:]))) not in (None, one.rows)
    ]
    return (*wrong, Check("row counts", not wrong, "as specified", "as specified" if not wrong else "others"))


def _unfinished(tests: StreamGroups) -> list[Note]:
    failed = [one for stream in tests.all for one in stream.ran if one.error]
    slow = sorted({one.name for one in failed if one.error == OVER_LIMIT})
    broken = sorted({(one.name, one.error) for one in failed if one.error not in (OVER_LIMIT, CANCELLED)})
    notes = [note("over-limit", queries=tuple(slow))] if slow else []
    return [*notes, *([note("query-failed", queries=tuple(broken))] if broken else [])]


def _facts(asked: TrialChoices, sets: Sequence[RefreshSet], work: Work) -> dict[str, str]:
    facts = {
        "streams": "sequenced by threads of Python, outside the core's loop",
        "parameters": "validation" if asked.validation else f"drawn, seed {asked.seed}",
    }
    if sets:
        size = work.choice.options["refresh_orders"]
        facts["refresh sets"] = f"{sets[0].number} to {sets[-1].number}, {size} orders per transaction"
    return facts


_COLUMNS = ("stream", "step", "begin_s", "elapsed_s", "rows", "error")


def _files(streams: Sequence[Stream], explained: Sequence[QueryPlanText]) -> dict[str, bytes]:
    """Returns additional files for the record. The key is the name of the file. In the files, the refresh stream of a
    throughput test has the number -1."""
    by_name = {"streams.csv": steps(streams).encode()}
    if explained:
        by_name["plans.txt"] = texts.plans_file(explained).encode()
    return by_name


def steps(streams: Sequence[Stream]) -> str:
    """Returns CSV with one line for each query and refresh function. Times are relative to the first submission."""
    begin_s = min((one.submitted_s for stream in streams for one in stream.ran), default=0.0)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    for stream in streams:
        for one in stream.ran:
            times = f"{one.submitted_s - begin_s:.6f}", f"{one.elapsed_s:.6f}"
            table.writerow((stream.number, one.name, *times, one.rows, one.error))
    return text.getvalue()
