"""The `tpch` workload: 22 analytical queries of a wholesale supplier, derived from TPC-H. The queries run as a power
test, a throughput test, both, or a single stream of queries.

Query texts, parameters and metrics were written for ironbench according to the TPC-H specification 2.17.3;
docs/workloads/tpch.md explains the choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Work
from ironbench.paths import expanded
from ironbench.words import counted
from ironbench.workloads import tpch_tables
from ironbench.workloads.base import Dataset, Option, Workload
from ironbench.workloads.tpch import figures
from ironbench.workloads.tpch import scores as merits
from ironbench.workloads.tpch.parameters import QUERIES
from ironbench.workloads.tpch.texts import DEPTHS
from ironbench.workloads.tpch.trial_choices import TESTS, chosen, course

_STREAMS = {"power": 1, "stream": 1, "throughput": 2, "both": 3}
"""Duration of each test, as a multiple of the duration of a single stream."""
_SEVERAL = ("throughput", "both")
"""Tests with several streams."""
_MOST_STREAMS = 200
_LONGEST_S = 1e7
_READ_WEIGHTS = {8: 5.0, 20: 13.0, 21: 8.0}
"""Weights of queries with many reads through indexes. All other queries have weight 1."""


class Tpch(Workload):
    name = "tpch"
    doc = (
        "22 analytical queries on eight tables, derived from TPC-H, with the power test, the "
        "throughput test and the refresh functions."
    )
    derived = "Derived from TPC-H: not comparable with published TPC-H results."
    counts = ("query", "queries")
    scores = ("composite_unrounded", "power_unrounded", "stream_throughput_unrounded", "throughput")
    needs = ("data", "queries")
    drives = True
    honours = frozenset({"cache", "checkpoint_s", "workers", "cluster"})
    usual_warmup_s = 0.0
    options = (
        tpch_tables.SCALE_FACTOR,
        tpch_tables.INDEXES,
        tpch_tables.REFERENCES,
        tpch_tables.STORED,
        Option(
            "test",
            "power",
            "power: one query stream between two refresh functions; throughput: several query streams "
            "and a refresh stream; both: the power test, then the throughput test; stream: one query "
            "stream, without refresh functions",
            TESTS,
        ),
        Option(
            "streams",
            "0",
            "number of query streams of a throughput test; 0: the minimum that TPC-H specifies",
            lowest=0,
            highest=_MOST_STREAMS,
        ),
        Option(
            "queries",
            "all",
            "queries to run: `all`, or numbers such as `1,6,14`; scores are computed only with all queries",
        ),
        Option(
            "parameters",
            "drawn",
            "parameters of the queries; drawn: random parameters as TPC-H specifies, from the seed of "
            "--seed; validation: the parameters for which TPC-H publishes answers",
            ("drawn", "validation"),
        ),
        Option("limit", "3600", "time limit for a query in s", lowest=0.001, highest=_LONGEST_S, whole=False),
        Option(
            "refresh_orders", "100", "number of orders per transaction of a refresh function", lowest=1, highest=10**9
        ),
        Option(
            "plans",
            "shape",
            "collection of query plans after the measured time; no: no plans; shape: plans and "
            "planning times, without running the queries; measured: run each query again, and collect "
            "plans with times and temporary files",
            DEPTHS,
            incidental=True,
        ),
        Option(
            "check",
            "once",
            "when to compare the query results with reference results, which exist for scale factors "
            "0.01, 0.1, 0.2, 0.3, 0.5, 1 and 10; once: after loading the data; always: after each "
            "trial; drawn: after each trial, with the query parameters drawn for it (requires expected=DIR); "
            "no: never",
            ("once", "always", "drawn", "no"),
            incidental=True,
        ),
        Option(
            "answers",
            "",
            "directory to which the results of the 22 queries are written, as q01.csv … q22.csv",
            incidental=True,
            path="directory",
        ),
        Option(
            "expected",
            "",
            "directory with reference results that another engine wrote with `answers`",
            incidental=True,
            path="directory",
        ),
    )

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return (*merits.leading(float(options.get("sf", "1"))), "query_time_geomean_s")

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        valid = super().validated(options)
        valid["queries"] = (
            "all" if len(chosen(valid["queries"])) == 22 else ",".join(map(str, chosen(valid["queries"])))
        )
        for name in ("answers", "expected"):
            if valid[name]:
                valid[name] = str(_folder(name, valid[name]))
        if valid["streams"] != "0" and valid["test"] not in _SEVERAL:
            cause = f"test={valid['test']} has only one stream"
            raise InputError(
                written("workload.with", f"streams={valid['streams']}"),
                cause,
                "use `test=throughput`, or remove this option",
            )
        if valid["check"] == "drawn" and not (valid["answers"] or valid["expected"]):
            raise InputError(
                written("workload.with", "check=drawn"),
                "there are no reference answers for these parameters",
                f"write one engine's answers with {written('workload.with', 'answers=DIR')}, "
                f"and compare the other engine's with {written('workload.with', 'expected=DIR')}",
            )
        return valid

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        tpch_tables.require_stored(system.engine, choice.options)
        if load.duration_s is not None:
            raise InputError(
                written("load.duration"),
                "a tpch trial ends when all queries are answered",
                f"remove it; {written('workload.with', 'limit=SECONDS')} limits each query",
            )

    def streams(self, options: Mapping[str, str]) -> tuple[int, str] | None:
        if options.get("test") not in _SEVERAL:
            return None
        valid = self.validated(options)
        streams = int(valid["streams"]) or merits.minimum_streams(float(valid["sf"]))
        return streams + 1, f"{counted(streams, 'stream')} and a refresh stream"

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        return None

    def expected_s(self, engine: str, options: Mapping[str, str]) -> float | None:
        streams, share = _STREAMS[options["test"]], len(chosen(options["queries"])) / 22
        return 1.0 + streams * share * engines.get(engine).traits.costs.queries_s * float(options["sf"])

    def expected_read_bytes(
        self, engine: str, options: Mapping[str, str], memory_bytes: int | None, cold: bool
    ) -> float:
        data_bytes = self.estimate_bytes(engine, options)
        if memory_bytes is None or memory_bytes >= data_bytes:
            return float(data_bytes) if cold else 0.0
        weights = [_READ_WEIGHTS.get(query, 1.0) for query in QUERIES]
        share = sum(weights[query - 1] for query in chosen(options["queries"])) / sum(weights)
        return engines.get(engine).traits.costs.queries_read * _STREAMS[options["test"]] * share * data_bytes

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return tpch_tables.dataset(engine, options)

    def preset(self, system: System, options: Mapping[str, str]) -> dict[str, str]:
        tests = course(options, 0)
        return engines.get(system.engine).preset(system, tests.streams if tests.has_throughput else 1)

    def measures(self, options: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return figures.metrics_of_trial(course(options, 0), options["plans"])

    def needs_untouched(self, session: Session, options: Mapping[str, str]) -> bool:
        from ironbench.workloads.tpch import validator

        dataset = tpch_tables.dataset(session.engine, options)
        return validator.needs_untouched(session, course(options, 0), dataset, options)

    def writes(self, options: Mapping[str, str]) -> bool:
        return options["test"] != "stream"

    def counts_all(self, options: Mapping[str, str]) -> bool:
        """Returns false if the test includes refresh functions. Refresh functions write WAL and use CPU time, but do
        not count as queries."""
        return options.get("test") == "stream"

    def drive(self, work: Work) -> Outcome:
        from ironbench.workloads.tpch import trial

        dataset = tpch_tables.dataset(work.session.engine, work.choice.options)
        # If there is a duration, this is a rehearsal. Users cannot set a duration.
        return trial.driven(work, dataset) if work.load.duration_s is None else trial.rehearsed(work)


def _folder(option: str, text: str) -> Path:
    """Returns the absolute path. Raises InputError if it cannot be a directory for this option."""
    place = expanded(text).absolute()
    subject = written("workload.with", f"{option}={text}")
    if option == "expected" and not place.is_dir():
        raise InputError(
            subject,
            "does not exist",
            f"let another engine write it with {written('workload.with', 'answers=DIR')}",
        )
    if place.exists() and not place.is_dir():
        raise InputError(
            subject, "is not a directory", "give the path of a directory; ironbench creates the directory if necessary"
        )
    return place


WORKLOAD = Tpch()
