"""Words for notes of single workloads."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.wording.load import changed
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, names, number, percent, span, strings
from ironbench.words import some


@wording("script-caution", "log-left-out")
def of_scripts(text: Strings) -> str:
    """a.sql: variable :x is not defined"""
    return names(text) or "the script may contain a mistake"


@wording("searches-empty")
def searches_empty(share: Number) -> str:
    """12% of the searches returned no entry"""
    return f"{percent(share)} of the searches returned no entry"


@wording("compares-false")
def compares_false(share: Number) -> str:
    """12% of the compares were false"""
    return f"{percent(share)} of the compares were false"


@wording("others-changed")
def others_changed(changes: Number) -> str:
    """other clients made 12 changes in this directory during the trial"""
    return f"other clients made {count(changes, 'change')} in this directory during the trial"


@wording("over-limit")
def over_limit(queries: Strings) -> str:
    """cancelled at the limit: q09, q21; figures that need all queries are withheld"""
    cancelled = ", ".join(strings(queries)) or "queries"
    return f"cancelled at the limit: {cancelled}; figures that need all queries are withheld"


@wording("query-failed")
def query_failed(queries: Sequence[Sequence[str]]) -> str:
    """refused by the engine: q09 (out of memory); figures that need all queries are withheld"""
    refused = some([f"{name} ({error})" for name, error in queries]) or "queries"
    return f"refused by the engine: {refused}; figures that need all queries are withheld"


_UNCHECKED = {
    "refreshed data": "refresh functions have changed the data before their answers were checked",
    "unknown scale factor": "no answers are known for this scale factor",
    "drawn parameters": (
        "answers at drawn parameters are compared with those of another engine: --with expected=DIR (workload.with "
        "in a lab)"
    ),
    "not requested": "as requested (check=no)",
    "written to files": "they were written to files and compared with nothing",
}


@wording("answers-unchecked")
def answers_unchecked(reason: Strings, written: Number = 0) -> str:
    """answers not checked: no answers are known for this scale factor"""
    why = names([_UNCHECKED.get(one, one) for one in strings(reason)])
    return f"answers not checked{f': {why}' if why else ''}"


_EARLIER = {
    "same data": "in an earlier trial on the same data",
    "before refresh": "in an earlier trial before refresh functions changed the data",
}


@wording("answers-checked")
def answers_checked(
    right: Number,
    of: Number,
    slow: Strings = (),
    limit_s: Number = 0.0,
    refused: Sequence[Sequence[str]] = (),
    earlier: Strings = "",
) -> str:
    """answers checked: 20 of 22 right, q09, q21 gave none within 60 s, in an earlier trial on the same data"""
    parts = [f"answers checked: {number(right)} of {number(of)} right"]
    if strings(slow):
        parts.append(f"{', '.join(strings(slow))} gave none within {span(limit_s)}")
    parts += [f"the engine refused {name} ({error})" for name, error in refused]
    parts += [_EARLIER.get(one, one) for one in strings(earlier)]
    return ", ".join(parts)


@wording("mix-missed")
def mix_missed(script: Strings, share: Number, specified: Number, transactions: Number) -> str:
    """out of mix: trade_order has 8% instead of 10% of 4,000 transactions"""
    return (
        f"out of mix: {names(script) or 'a transaction'} {percent(share)} instead of {percent(specified)} of "
        f"{count(transactions, 'transaction')}"
    )


@wording("response-limit-missed")
def response_limit(
    script: Strings, limit_s: Number, p90_s: Number | None = None, longest_s: Number | None = None
) -> str:
    """90% of the response times of trade_order are up to 4 s (limit 3 s)"""
    if longest_s is not None:
        return f"{names(script) or 'a transaction'} took {span(longest_s)} (limit {span(limit_s)})"
    whose = f" of {names(script)}" if strings(script) else ""
    return f"the 90th percentile of response times{whose} is {span(p90_s or 0.0)} (limit {span(limit_s)})"


@wording("no-steady-state")
def no_steady_state(
    least_s: Number | None = None, rate: Strings = "", change: Number = 0.0, after_s: Number | None = None
) -> str:
    """no steady state: the rate of the market's transactions fell by 20% after 12 s and stayed there"""
    if least_s is not None:
        return f"too short to tell whether there was a steady state: {span(least_s)} at least"
    what = "the rate of the market's transactions" if "market" in strings(rate) else "throughput"
    return f"no steady state: {what} {changed(change, after_s)}"


@wording("market-gave-up")
def given_up(given_up: Number) -> str:
    """the market gave up 2 results or feeds after 20 tries each: their trades stay in progress"""
    what = "result or feed" if number(given_up) == "1" else "results or feeds"
    return f"the market gave up {number(given_up)} {what} after 20 tries each: their trades stay in progress"


@wording("no-score")
def no_score() -> str:
    """one client played all roles, one after another, and each transaction advanced the time: no score"""
    return "one client played all roles, one after another, and each transaction advanced the time: no score"
