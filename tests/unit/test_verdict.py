"""From blocks to a verdict: properties that hold for any data, and reference values from other sources."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from factories import codes
from hypothesis import given
from hypothesis import strategies as st
from labfactory import lab, trials

from ironbench.lab.noise import FACTOR, SIDES, floors
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Lab, Method, Stage
from ironbench.model.note import note
from ironbench.model.record import Status
from ironbench.report import wording
from ironbench.stats.multiplicity import corrected, divisors
from ironbench.stats.ratio import paired
from ironbench.study.findings import findings
from ironbench.study.verdict import judged, of_blocks
from ironbench.words import THIN

SIX = Method((Stage(1, 6),), seed=1)
TURNED = {Conclusion.FASTER: Conclusion.SLOWER, Conclusion.SLOWER: Conclusion.FASTER}

value = st.floats(1.0, 1e6)
pairs = st.lists(st.tuples(value, value), min_size=6, max_size=25).map(
    lambda found: [(block, a, b) for block, (a, b) in enumerate(found)]
)


def told(found: list[tuple[int, float, float]], metric: str = "throughput", method: Method = SIX) -> Finding:
    return judged(of_blocks(metric, "A", "B", found), method)


def spread(centre: float, deviation: float, count: int = 6) -> list[tuple[int, float, float]]:
    """Returns pairs whose log ratios have exactly this mean and nearly this standard deviation."""
    signs = [1 if block % 2 else -1 for block in range(count)]
    return [(block, 1000 * math.exp(math.log(centre) + sign * deviation), 1000) for block, sign in enumerate(signs)]


def test_the_interval_is_that_of_the_textbook() -> None:
    # Log ratios 1..5 hundredths and 3: mean 0.03, s = 0.0141421, t(5) = 2.570582, half width 0.0148413.
    found = paired([math.exp(x / 100) for x in (1, 2, 3, 3, 4, 5)])
    assert found.mean == pytest.approx(0.03)
    assert found.spread == pytest.approx(0.01 * math.sqrt(2))
    low, high = found.interval(0.05)
    assert math.log(low) == pytest.approx(0.03 - 0.0148413, abs=1e-6)
    assert math.log(high) == pytest.approx(0.03 + 0.0148413, abs=1e-6)


def test_students_own_sleep_data_give_his_p() -> None:
    # Student (1908), extra hours of sleep, differences of ten patients: t = 4.0621, p = 0.002833 (R's t.test).
    hours = (1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4)
    assert paired([math.exp(hour) for hour in hours]).p_equal() == pytest.approx(0.002833, abs=1e-6)


@given(pairs)
def test_swapping_the_cells_inverts_the_ratio(found: list[tuple[int, float, float]]) -> None:
    one, other = told(found), told([(block, b, a) for block, a, b in found])
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))
    assert one.conclusion is TURNED.get(other.conclusion, other.conclusion)
    assert one.detectable == pytest.approx(other.detectable)


@given(pairs, st.floats(0.01, 100))
def test_a_change_of_unit_changes_nothing(found: list[tuple[int, float, float]], factor: float) -> None:
    one, other = told(found), told([(block, a * factor, b * factor) for block, a, b in found])
    assert (one.ratio, one.low, one.high) == pytest.approx((other.ratio, other.low, other.high))


@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_blocks_changes_nothing(found: list[tuple[int, float, float]], dice: random.Random) -> None:
    mixed = dice.sample(found, len(found))
    assert told(found) == told(mixed)


@given(pairs, st.floats(0.01, 0.3), st.floats(0.0, 0.5))
def test_a_wider_margin_never_ends_an_equivalence(
    found: list[tuple[int, float, float]], margin: float, more: float
) -> None:
    near = [(block, b * (1 + (a / b - 1) * 1e-8), b) for block, a, b in found]
    narrow = told(near, method=replace(SIX, margin=margin))
    wide = told(near, method=replace(SIX, margin=margin + more))
    if narrow.conclusion is Conclusion.EQUIVALENT:
        assert wide.conclusion is Conclusion.EQUIVALENT


@given(pairs)
def test_less_is_better_where_the_catalogue_says_so(found: list[tuple[int, float, float]]) -> None:
    one, other = told(found, "throughput"), told(found, "response_time_mean_s")
    assert one.conclusion is TURNED.get(other.conclusion, other.conclusion)


@given(pairs)
def test_an_interval_with_1_inside_is_never_faster_or_slower(found: list[tuple[int, float, float]]) -> None:
    one = told(found)
    differs = one.conclusion in (Conclusion.FASTER, Conclusion.SLOWER)
    assert differs == (not one.low <= 1 <= one.high)


def test_the_four_verdicts() -> None:
    assert told(spread(1.2, 0.03)).conclusion is Conclusion.FASTER
    assert told(spread(0.8, 0.03)).conclusion is Conclusion.SLOWER
    assert told(spread(1.0, 0.03)).conclusion is Conclusion.EQUIVALENT
    assert told(spread(1.02, 0.08)).conclusion is Conclusion.CANNOT_TELL


def test_five_blocks_tell_nothing_however_clear() -> None:
    one = told(spread(2.0, 0.001, 5))
    assert one.conclusion is Conclusion.CANNOT_TELL
    assert note("too-few-blocks", blocks=5, least=6) in one.warnings


def test_below_six_blocks_nothing_is_promised_but_the_end_of_the_lab() -> None:
    one = told(spread(2.0, 0.5, 3), method=replace(SIX, stages=(Stage(1, 8),)))
    assert one.detectable is None
    assert one.advice == note("finish-lab", planned=8, least=6)
    short = told(spread(2.0, 0.5, 3), method=replace(SIX, stages=(Stage(1, 3),)))
    assert short.advice == note("least-blocks", least=6)


def test_without_a_verdict_because_of_failed_trials_the_advice_is_to_repeat_their_blocks() -> None:
    def lost(blocks: int, sides: tuple[int, int], failed: int) -> Finding:
        """Returns the finding of a lab in which each side lost some blocks. The first `failed` of them failed in both
        attempts, and the others have no throughput."""
        plan = lab({"log": ("disk", "memory")}, blocks=blocks + sum(sides))
        cells = ("log=memory", "log=disk")
        gone = [(cells[0], block) for block in range(sides[0])]
        gone += [(cells[1], sides[0] + block) for block in range(sides[1])]
        found = []
        for one in trials(plan, {"log=disk": 1000.0, "log=memory": 2000.0}, 0.001):
            if (one.cell.name, one.block) not in gone:
                found.append(one)
                continue
            bad = replace(one, metrics={})
            if gone.index((one.cell.name, one.block)) < failed:
                bad = replace(bad, status=Status.FAILED)
                found.append(replace(bad, attempt=2, id=f"{bad.id}-a2"))
            found.append(bad)
        return findings(found, plan, 1, others=())[0]

    for blocks, sides, failed in ((5, (1, 0), 1), (5, (1, 1), 2), (9, (0, 2), 2), (0, (6, 0), 6)):
        advice = lost(blocks, sides, failed).advice
        assert advice == note("repeat-failed", blocks=failed)
        assert "`ironbench lab resume --failed`" in wording.text(advice)
    assert lost(5, (1, 0), 0).advice is None, "a repeat would not help: the trials did not fail"
    assert lost(9, (1, 1), 1).conclusion is Conclusion.FASTER and lost(9, (1, 1), 1).advice is None
    crashed = lost(0, (6, 0), 6)
    assert crashed.unequal_losses and crashed.barred is not None, "also without any complete block"


def test_what_cannot_be_told_says_what_it_would_take() -> None:
    one = told(spread(1.02, 0.04))
    assert one.advice is not None
    assert (one.advice.code, one.advice.values["margin"]) == ("another-round", 0.05)
    assert told(spread(1.2, 0.03)).advice is None
    assert codes(told(spread(1.2, 3.0)).advice or note("none")) == ["reduce-variation"]


@pytest.mark.parametrize(("noise", "many"), [(0.2, 100), (3.0, 10_000)])
def test_more_blocks_than_anybody_runs_are_no_advice(noise: float, many: int) -> None:
    advice = told(spread(1.02, noise)).advice
    assert advice is not None
    assert (advice.code, advice.values["more_than"]) == ("reduce-variation", many)


def test_a_difference_smaller_than_the_margin_says_so() -> None:
    one = told(spread(1.01, 0.003))
    assert one.conclusion is Conclusion.FASTER
    assert note("below-margin", margin=0.05) in one.warnings


def test_a_metric_without_direction_is_never_better() -> None:
    assert told(spread(2.0, 0.01), "transactions").conclusion is Conclusion.CANNOT_TELL


def test_no_block_at_all_is_no_finding_and_no_error() -> None:
    one = told([])
    assert (one.conclusion, one.blocks, one.detectable) == (Conclusion.CANNOT_TELL, 0, None)


def test_blocks_without_any_spread_are_certain() -> None:
    same = [(block, 100.0, 100.0) for block in range(6)]
    assert told(same).conclusion is Conclusion.EQUIVALENT
    assert told([(block, 110.0, 100.0) for block in range(6)]).conclusion is Conclusion.FASTER


def test_what_does_not_decide_carries_no_verdict() -> None:
    one = judged(of_blocks("response_time_p99_s", "A", "B", spread(2.0, 0.01), decides=False), SIX)
    assert (one.conclusion, one.p, one.decides, one.advice) == (Conclusion.CANNOT_TELL, None, False, None)
    assert one.low > 1


def test_holm_gives_the_published_adjusted_values() -> None:
    # Holm (1979) by hand; R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
    assert corrected([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert divisors([0.01, 0.04, 0.03, 0.005], lambda _, many: 0.05 / many) == (3, 2, 2, 4)
    assert corrected([]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_where_the_corrected_value_says_so(ps: list[float]) -> None:
    by = divisors(ps, lambda _, many: 0.05 / many)
    for p, divisor, adjusted in zip(ps, by, corrected(ps), strict=True):
        if abs(adjusted - 0.05) > 1e-12:
            assert (p <= 0.05 / divisor) == (adjusted <= 0.05)


def test_the_page_about_verdicts_tells_what_the_code_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "understand" / "verdicts.md").read_text()
    rows = re.findall(r"^\| (\d) \| (\d+) \| (\d+) \| ([\d.]+) \|$", page, re.MULTILINE)
    one = told([(int(block), float(a), float(b)) for block, a, b, _ in rows])
    assert one.conclusion is Conclusion.CANNOT_TELL
    assert [f"{ratio:.3f}" for _, ratio in one.ratios] == [ratio for *_, ratio in rows]
    assert f"The mean ratio is {one.ratio:.3f}" in page
    assert f"from {one.low:.3f} to {one.high:.3f}" in page
    assert f"minimum detectable effect is {100 * (one.detectable or 0):.0f}%" in page
    assert one.advice is not None
    assert f"To decide: {wording.text(one.advice).replace(THIN, ' ')}.**" in page


def test_percentiles_that_are_rounded_alike_are_no_perfect_knowledge() -> None:
    """Six blocks with 10.0 ms and 10.1 ms each: one step of the histogram, and no variation."""
    metric, pairs = "response_time_p99_s", [(block, 10.01, 10.0) for block in range(6)]
    same = told(pairs, metric)
    assert same.p == pytest.approx(1.0) and same.conclusion is not Conclusion.SLOWER
    assert same.low < 1.0 <= same.high
    clear = told([(block, 10.5, 10.0) for block in range(6)], metric)
    assert clear.conclusion is Conclusion.SLOWER and clear.p is not None and clear.p > 0
    assert clear.low < 1.05 < clear.high


def test_run_to_run_variation_does_not_depend_on_how_many_blocks_measured_it() -> None:
    dice = random.Random(1)
    lab_blocks = 400
    plan = against(lab_blocks)
    names = [setup.cell.name for setup in plan.setups]
    values = {(name, block): 1000 * math.exp(dice.gauss(0, 0.02)) for name in names for block in range(lab_blocks)}
    records = [
        replace(one, metrics={**one.metrics, "throughput": values[one.cell.name, one.block]})
        for one in trials(plan, dict.fromkeys(names, 1000.0))
    ]
    few, many = (
        next(one for one in floors([r for r in records if r.block < blocks], plan) if one.metric == "throughput")
        for blocks in (25, lab_blocks)
    )
    # 1.96 standard deviations of the log ratio of two runs that vary by 2% each.
    assert many.floor == pytest.approx(math.expm1(1.96 * 0.02 * math.sqrt(2)), rel=0.1)
    assert few.floor == pytest.approx(many.floor, rel=0.4)


def against(blocks: int) -> Lab:
    return lab({FACTOR: SIDES}, blocks=blocks)
