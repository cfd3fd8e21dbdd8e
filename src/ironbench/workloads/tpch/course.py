"""What one trial runs: which tests, streams, queries and refresh sets (TPC-H specification 2.17.3, clause 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from ironbench.errors import InputError
from ironbench.workloads.tpch import parameters, scores, texts
from ironbench.workloads.tpch.orders import order
from ironbench.workloads.tpch.parameters import QUERIES, Values

TESTS = ("power", "throughput", "both", "stream")
_POWER_STREAM = 0


@dataclass(frozen=True, slots=True)
class Course:
    """The choices of a trial."""

    test: str
    scale: Decimal
    streams: int
    """Of the throughput test."""
    queries: tuple[int, ...]
    validation: bool
    """The published parameters instead of drawn ones."""
    limit_s: float
    """Longest time of a query."""
    seed: int

    @property
    def has_power(self) -> bool:
        return self.test in ("power", "both")

    @property
    def has_throughput(self) -> bool:
        return self.test in ("throughput", "both")

    @property
    def refresh_sets(self) -> int:
        """A power test runs one, a throughput test one for each stream."""
        return self.has_power + (self.streams if self.has_throughput else 0)

    @property
    def whole(self) -> bool:
        """Only all 22 queries give figures of merit."""
        return self.queries == QUERIES

    def values(self, query: int, stream: int) -> Values:
        """Of a query in a stream; 0 is the power test's. Each stream's seed is the power test's plus its number."""
        if self.validation:
            return parameters.validation(query)
        return parameters.drawn(query, self.seed + stream, self.scale)

    def statements(self, stream: int, engine: str) -> list[tuple[int, str]]:
        """The stream's queries in their order."""
        return [
            (query, texts.text(query, engine, self.values(query, stream)))
            for query in order(stream)
            if query in self.queries
        ]

    def planned(self) -> int:
        """Queries in all streams."""
        streams = (1 if self.test != "throughput" else 0) + (self.streams if self.has_throughput else 0)
        return streams * len(self.queries)


def course(options: Mapping[str, str], seed: int) -> Course:
    """From validated options. InputError: queries that there are not."""
    scale = Decimal(options["sf"])
    return Course(
        test=options["test"],
        scale=scale,
        streams=int(options["streams"]) or scores.minimum_streams(float(scale)),
        queries=chosen(options["queries"]),
        validation=options["parameters"] == "validation",
        limit_s=float(options["limit"]),
        seed=seed,
    )


def chosen(text: str) -> tuple[int, ...]:
    """`all`, or numbers such as `1,6,14`; in ascending order. InputError."""
    if text == "all":
        return QUERIES
    subject, hint = f"--with queries={text}", "write all, or numbers from 1 to 22 such as 1,6,14"
    try:
        numbers = sorted({int(part.strip().lower().removeprefix("q")) for part in text.split(",")})
    except ValueError:
        raise InputError(subject, "this is no list of numbers", hint) from None
    for number in numbers:
        if number not in QUERIES:
            raise InputError(subject, f"there is no query {number}", hint)
    return tuple(numbers)
