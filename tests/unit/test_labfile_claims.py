"""A claim refers to the configurations and the metric in its text, or is refused before anything starts."""

from __future__ import annotations

import pytest

from ironbench.errors import InputError
from ironbench.model.lab import Claim
from ironbench.plan import claims, design, labfile

LAB = """
question = "Is it the log?"
design = "{design}"
[workload]
name = "igen-oltp"
[vary]
clients = [1, 8]
[vary.log]
disk = {{}}
ssd = {{ layout.log = "/ssd/log" }}
"48 GB" = {{ layout.log = "/dev/shm/log" }}
[expect]
claims = ['{claim}']
"""


def claim(text: str, design_: str = "one-at-a-time") -> Claim:
    declared = labfile.read(LAB.format(claim=text, design=design_), "x.toml")
    (found,) = claims.read(declared, design.cells(declared))
    return found


def refused(text: str, design_: str = "one-at-a-time") -> InputError:
    with pytest.raises(InputError) as caught:
        claim(text, design_)
    assert caught.value.subject == "x.toml, expect.claims[0]"
    assert caught.value.hint
    return caught.value


def test_a_ratio_names_two_cells_and_a_range() -> None:
    found = claim("log=ssd over log=disk: 1.00 to 1.10")
    assert (found.kind, found.metric, found.low, found.high) == ("ratio", "throughput", 1.0, 1.1)
    assert found.cells == ("clients=1 log=ssd", "clients=1 log=disk")


def test_an_order_names_levels_from_the_best_to_the_worst() -> None:
    found = claim("order: 48 GB > ssd > disk")
    assert found.kind == "order"
    assert found.cells == ("clients=1 log=48 GB", "clients=1 log=ssd", "clients=1 log=disk")


VARIED = """
question = "Which is best?"
[workload]
name = "igen-oltp"
[vary]
{vary}
[expect]
claims = ["{claim}"]
"""


def test_names_of_cells_may_have_colons_or_begin_as_an_order_does() -> None:
    def found(vary: str, claim: str) -> Claim:
        declared = labfile.read(VARIED.format(vary=vary, claim=claim), "x.toml")
        return claims.read(declared, design.cells(declared))[0]

    order = found('bin = ["wheel:16", "wheel:18"]', "order: wheel:18 > wheel:16")
    assert (order.kind, order.cells) == ("order", ("bin=wheel:18", "bin=wheel:16"))
    named = "order.plain = { clients = 1 }\norder.fast = { clients = 2 }"
    ratio = found(named, "order=fast over order=plain: at least 1.1")
    assert (ratio.kind, ratio.cells, ratio.low) == ("ratio", ("order=fast", "order=plain"), 1.1)


def test_a_metric_stands_in_parentheses() -> None:
    assert claim("ssd over disk (response_time_p99_s): 0.5 to 1.0").metric == "response_time_p99_s"
    assert claim("order (response_time_p99_s): ssd > disk").metric == "response_time_p99_s"
    assert claim("ssd over disk (throughput{script=order}): 1 to 2").metric == "throughput{script=order}"


def test_a_range_may_be_open() -> None:
    assert (claim("ssd over disk: at least 1.2").low, claim("ssd over disk: at least 1.2").high) == (1.2, None)
    assert (claim("ssd over disk: at most 0.9").low, claim("ssd over disk: at most 0.9").high) == (None, 0.9)


def test_a_factor_that_is_not_mentioned_is_at_its_first_level() -> None:
    assert claim("clients=8 over clients=1: 1 to 9", "full").cells == ("clients=8 log=disk", "clients=1 log=disk")
    both = claim("clients=8 log=48 GB over log=48 GB: 1 to 9", "full")
    assert both.cells == ("clients=8 log=48 GB", "clients=1 log=48 GB")


def test_a_cell_may_be_named_at_a_share_of_the_peak() -> None:
    found = claim("ssd rate=70% over log=disk rate=70% (response_time_p99_s): at most 0.8")
    assert found.cells == ("clients=1 log=ssd rate=70%", "clients=1 log=disk rate=70%")
    best, _ = claim("order (response_time_p99_s): 48 GB rate=50% > ssd rate=50%").cells
    assert best == "clients=1 log=48 GB rate=50%"
    assert "not a percentage" in refused("ssd rate=fast over disk rate=70% (response_time_p99_s): 0.5 to 1.0").cause


@pytest.mark.parametrize(
    ("text", "metric", "low", "high"),
    [
        ("log=ssd (response_time_p99_s): at most 10ms", "response_time_p99_s", None, 0.01),
        ("ssd: at least 2,000/s", "throughput", 2000.0, None),
        ("ssd: 2000/s to 3000/s", "throughput", 2000.0, 3000.0),
        ("ssd (response_time_p99_s): 5 ms to 10 ms", "response_time_p99_s", 0.005, 0.01),
    ],
)
def test_a_limit_names_one_cell_and_values_with_units(
    text: str, metric: str, low: float | None, high: float | None
) -> None:
    found = claim(text)
    assert (found.kind, found.cells, found.metric) == ("value", ("clients=1 log=ssd",), metric)
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssd over disk", "no colon"),
        ("ssd and disk: 1 to 2", "unknown configuration or value ssd and disk"),
        ("ssd (response_time_p99_s): at most 10", "has no unit"),
        ("ssd: fast", "neither a limit nor a range"),
        ("ssd: 3000/s to 2000/s", "an empty range"),
        ("ssd: at most soon", "is not a value of throughput"),
        ("ssd over disk: 1.1", "not a range of ratios"),
        ("ssd over disk: 1.1 to 1.0", "not a range of ratios"),
        ("ssd over ssd: 1 to 2", "compared with itself"),
        ("order: ssd", "at least two"),
        ("order: ssd > hdd", "unknown configuration or value hdd"),
        ("lgo=ssd over disk: 1 to 2", "unknown factor lgo"),
        ("log=sdd over disk: 1 to 2", "factor log has no value sdd"),
        ("clients=8 log=ssd over disk: 1 to 2", "no configuration matches"),
        ("ssd over disk (throughputs): 1 to 2", "unknown metric throughputs"),
        ("order (transactions): ssd > disk", "neither higher nor lower values of transactions are better"),
        ("order response_time_p99_s: ssd > disk", "is not a metric in parentheses"),
        ("order (P99): ssd > disk", "is not a metric in parentheses"),
    ],
)
def test_a_claim_that_cannot_be_meant_is_refused(text: str, words: str) -> None:
    error = refused(text)
    assert words in error.cause


def test_the_nearest_names_are_suggested() -> None:
    assert "ssd" in refused("sssd over disk: 1 to 2").hint
    assert "throughput" in refused("ssd over disk (thruput): 1 to 2").hint


def compared(*texts: str) -> tuple[tuple[str, str], ...]:
    text = LAB.format(claim="order: ssd > disk", design="full") + f"[measure]\ncompare = {list(texts)}\n"
    declared = labfile.read(text, "x.toml")
    return claims.comparisons(declared, design.cells(declared))


def test_a_lab_gives_verdicts_on_the_comparisons_it_names_and_else_on_those_of_its_design() -> None:
    wanted = ("clients=8 log=ssd", "clients=8 log=disk")
    assert compared("clients=8 log=ssd over clients=8 log=disk") == (wanted,)
    assert compared("log=ssd clients=8 over log=disk clients=8", " over ".join(wanted)) == (wanted,)
    assert len(compared()) == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssd", "is not a comparison of two configurations"),
        ("ssd over ssd", "compared with itself"),
        ("ssd over hdd", "unknown configuration or value hdd"),
        ("ssd rate=70% over disk rate=70%", "compared only by claims"),
    ],
)
def test_a_comparison_that_cannot_be_meant_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        compared("48 GB over disk", text)
    assert caught.value.subject == "x.toml, measure.compare[1]"


def test_a_level_of_two_factors_needs_its_factor() -> None:
    text = LAB.format(claim="on over off: 1 to 2", design="one-at-a-time")
    text = text.replace("clients = [1, 8]", 'system.set.a = ["off", "on"]\nsystem.set.b = ["off", "on"]')
    declared = labfile.read(text, "x.toml")
    with pytest.raises(InputError, match="on is a value of a and of b"):
        claims.read(declared, design.cells(declared))
