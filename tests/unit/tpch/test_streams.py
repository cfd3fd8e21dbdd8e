"""Streams run their queries in order, one at a time, within their limits."""

import os
import signal
import statistics
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ironbench.catalogue import base_name, part_of
from ironbench.engines.sqlite.connection import SqliteLine
from ironbench.errors import EngineDiedError, FailureError
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.workloads.tpch import figures, streams, trial
from ironbench.workloads.tpch.streams import Query, StepRun, Stream
from ironbench.workloads.tpch.trial_choices import chosen, course

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
OPTIONS = {"sf": "1", "test": "both", "streams": "0", "queries": "all", "parameters": "drawn", "limit": "60"}


@pytest.fixture
def line(tmp_path: Path):
    opened = SqliteLine(str(tmp_path / "file"), ())
    yield opened
    opened.close()


def run(stream: Stream) -> list[StepRun]:
    streams.run([stream], lambda: False, lambda done, running: None)
    return stream.ran


def test_queries_run_one_after_the_other_and_their_rows_are_counted(line: SqliteLine) -> None:
    ran = run(Stream(1, [Query(f"q0{n}", f"VALUES {', '.join(['(1)'] * n)}", line, 9.0) for n in (3, 1, 2)]))
    assert [(one.name, one.rows, one.error) for one in ran] == [("q03", 3, ""), ("q01", 1, ""), ("q02", 2, "")]
    assert all(gap > 0 for gap in streams.gaps_s(ran))


def test_a_query_over_its_limit_is_cancelled_and_the_next_one_runs(line: SqliteLine) -> None:
    ran = run(Stream(1, [Query("q01", ENDLESS, line, 0.2), Query("q02", "SELECT 1", line, 9.0)]))
    assert [one.error for one in ran] == ["over-limit", ""]
    assert streams.gaps_s(ran)[0] >= 0
    assert 0.2 <= ran[0].elapsed_s < 3


def test_a_stream_that_is_told_to_end_begins_nothing_more(line: SqliteLine) -> None:
    begin = time.perf_counter()
    stream = Stream(1, [Query("q01", ENDLESS, line, 99.0), Query("q02", "SELECT 1", line, 99.0)])
    streams.run([stream], lambda: time.perf_counter() - begin > 0.2, lambda done, running: None)
    assert [one.error for one in stream.ran] == [streams.CANCELLED]


def test_nothing_is_left_running_of_what_was_announced(tmp_path: Path) -> None:
    begin = time.perf_counter()
    line = SqliteLine(str(tmp_path / "file"), ())
    stream = Stream(1, [Query("q01", ENDLESS, line, 99.0), Query("q02", ENDLESS, line, 99.0)])
    streams.run([stream], lambda: time.perf_counter() - begin > 0.2, lambda done, running: None)
    line.close()
    assert [one.error for one in stream.ran] == [streams.CANCELLED]
    assert line.child.process.returncode == 0


def test_an_announced_statement_is_measured_or_let_go(line: SqliteLine) -> None:
    assert line.measure_before("VALUES (1)", "VALUES (1), (2)")[0] == 1
    assert line.measure_before("VALUES (1), (2)", ENDLESS)[0] == 2
    assert line.measure("VALUES (1), (2), (3)")[0] == 3
    with pytest.raises(FailureError, match="no such table"):
        line.measure_before("SELECT * FROM nowhere", "SELECT 4")
    assert line.measure("SELECT 4")[0] == 1
    line.measure_before("SELECT 5", ENDLESS)
    assert line.query("SELECT 6") == [("6",)]


def test_a_cancellation_that_comes_late_spares_the_next_statement(line: SqliteLine) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT i FROM n"
    line.measure_before("SELECT 1", many)
    line.cancel()
    line.interrupt(line._answered)
    assert line.measure(many)[0] == 300_000


def test_a_cancellation_that_comes_with_the_answer_spares_the_announced_statement(tmp_path: Path) -> None:
    class CancelledWithEachAnswer(SqliteLine):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_answered" and value:
                self.cancel()

    line = CancelledWithEachAnswer(str(tmp_path / "file"), ())
    try:
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT i FROM n"
        assert line.measure_before("SELECT 1", many)[0] == 1
        assert line.measure(many)[0] == 300_000
    finally:
        line.close()


def test_a_process_that_answers_no_more_is_killed_when_its_line_is_closed(
    line: SqliteLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ironbench.host.child_connection.PATIENCE_S", 0.1)
    line.measure_before("SELECT 1", ENDLESS)
    os.kill(line.child.process.pid, signal.SIGSTOP)
    line.close()
    assert line.child.process.returncode == -signal.SIGKILL


def test_an_engine_that_dies_ends_all_streams_with_its_error(line: SqliteLine, tmp_path: Path) -> None:
    other = SqliteLine(str(tmp_path / "file"), ())
    try:
        line.child.process.kill()
        both = [Stream(1, [Query("q01", "SELECT 1", line, 9.0)]), Stream(2, [Query("q01", ENDLESS, other, 99.0)])]
        with pytest.raises(EngineDiedError, match="SIGKILL"):
            streams.run(both, lambda: False, lambda done, running: None)
        assert both[1].ran[0].error == streams.CANCELLED
    finally:
        other.close()


def test_a_mistake_in_a_statement_is_told_as_the_engine_told_it(line: SqliteLine) -> None:
    with pytest.raises(FailureError, match="no such table"):
        line.query("SELECT * FROM nowhere")
    assert line.query("SELECT 1") == [("1",)]
    assert line.columns() == ["1"]


def done(name: str, begin_s: float, end_s: float, error: str = "") -> StepRun:
    return StepRun(name, 1, begin_s, end_s, error)


def a_stream(number: int, ran: list[StepRun]) -> Stream:
    stream = Stream(number, ())
    stream.ran.extend(ran)
    return stream


def a_power_test(queries: list[StepRun]) -> list[StepRun]:
    return [done("rf1", 0.0, 1.0), *queries, done("rf2", 23.0, 24.0)]


def test_figures_of_merit_are_withheld_when_a_query_was_not_answered() -> None:
    both = course(OPTIONS, 1)
    names = [f"q{number:02d}" for number in range(1, 23)]
    queries = [done(name, 1.0 + place, 2.0 + place) for place, name in enumerate(names)]
    power = a_stream(0, a_power_test(queries))
    refreshing = [done(name, 30.0, 31.0) for name in ("rf1", "rf2") * 2]
    through = [a_stream(1, queries), a_stream(2, queries), a_stream(-1, refreshing)]
    found = figures.metrics(both, power, through)
    assert found["power"] == pytest.approx(3600.0)
    assert found["stream_throughput"] == pytest.approx(2 * 22 * 3600 / 30)
    assert found["composite"] == pytest.approx((3600.0 * 2 * 22 * 120) ** 0.5)
    assert found["query_time_s{query=q07}"] == 1.0
    promised = {(name, part) for name, parts in figures.metrics_of_trial(both, "no").items() for part in parts}
    assert promised == {(base_name(name), part_of(name)) for name in found if not name.startswith("lateness")}
    power.ran[5] = done(power.ran[5].name, 5.0, 6.0, streams.OVER_LIMIT)
    withheld = figures.metrics(both, power, through)
    assert not {"power", "power_unrounded", "composite"} & set(withheld)
    assert "query_time_s{query=q05}" not in withheld
    assert withheld["query_time_s{query=q06}"] == 1.0
    assert trial.steps([power]).splitlines()[6] == "0,q05,5.000000,1.000000,1,over-limit"


def test_without_the_answer_of_its_slowest_query_no_system_has_a_mean_of_all() -> None:
    times_s = [1.0] * 21 + [60.0]
    queries = [done(f"q{number:02d}", 0.0, time_s) for number, time_s in enumerate(times_s, 1)]
    cancelled = [*queries[:-1], done("q22", 0.0, 60.0, streams.OVER_LIMIT)]
    single = course({**OPTIONS, "test": "stream"}, 1)
    found = figures.metrics(single, a_stream(0, queries), ())
    assert found["query_time_geomean_s"] == pytest.approx(60 ** (1 / 22))
    assert "query_time_geomean_s" not in figures.metrics(single, a_stream(0, cancelled), ())
    several = course({**OPTIONS, "test": "throughput"}, 1)
    both = [a_stream(1, queries), a_stream(2, queries), a_stream(-1, [])]
    assert figures.metrics(several, None, both)["query_time_geomean_s"] == pytest.approx(60 ** (1 / 22))
    both[1] = a_stream(2, cancelled)
    found = figures.metrics(several, None, both)
    assert found["query_time_s{query=q22}"] == 60.0 and "query_time_geomean_s" not in found


class Told:
    """A connection to a server that returns the plan of every query except one that it refuses."""

    def __init__(self, refused: str) -> None:
        self.asked: list[str] = []
        self._refused = refused

    def query(self, sql: str) -> list[tuple[str]]:
        self.asked.append(sql)
        if self._refused in sql:
            error = FailureError("statement", "out of memory")
            error.sqlstate = "53200"
            raise error
        return [('[{"Plan": {"Temp Written Blocks": 1}, "Planning Time": 2.0}]',)]

    def columns(self) -> list[str]:
        return ["QUERY PLAN"]

    def close(self) -> None:
        """Does nothing."""


def test_a_query_that_was_cancelled_is_not_run_again_for_its_plan_and_a_refused_plan_ends_no_trial() -> None:
    asked = course({**OPTIONS, "test": "stream", "queries": "1,4,6"}, 1)
    told = Told("o_orderpriority")
    work = SimpleNamespace(
        choice=SimpleNamespace(options={"plans": "measured"}),
        session=SimpleNamespace(engine="postgres", line=lambda cpus: told),
        system=SimpleNamespace(server_cpus=None),
        stopping=lambda: False,
    )
    ran = [done("q01", 0.0, 1.0), done("q06", 1.0, 61.0, streams.OVER_LIMIT), done("q04", 61.0, 62.0)]
    found = trial._explained(work, asked, trial.StreamGroups(a_stream(0, ran), ()))
    assert [sql.startswith("EXPLAIN (ANALYZE") for sql in told.asked] == [True, True, False]
    assert [(one.query, one.planning_s) for one in found] == [(1, 0.002), (6, 0.002)]


def test_power_is_that_of_the_times_shown() -> None:
    names = [f"q{number:02d}" for number in range(1, 23)]
    queries = [done(name, 1.0 + place, 1.1 + place + place / 100) for place, name in enumerate(names)]
    found = figures.metrics(course({**OPTIONS, "test": "power"}, 1), a_stream(0, a_power_test(queries)), ())
    shown = [found[name] for name in found if name.startswith(("query_time_s{", "refresh_time_s{"))]
    assert len(shown) == 24
    assert found["power_unrounded"] == pytest.approx(3600 / statistics.geometric_mean(shown))


def test_a_stream_is_called_by_its_number() -> None:
    assert metric_words("stream_time_s{stream=0}") == "time of stream 0"
    assert metric_words("query_time_s{query=q07}").endswith(" of q07")


def test_only_queries_that_there_are_can_be_chosen() -> None:
    from ironbench.errors import InputError

    assert chosen("6, q1,14") == (1, 6, 14)
    for text in ("0", "1,23", "x", ""):
        with pytest.raises(InputError, match="queries="):
            chosen(text)
    assert not course({**OPTIONS, "queries": "1"}, 1).whole
