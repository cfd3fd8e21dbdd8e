"""A compared with B: ratios and variation without a verdict; invalid trials are excluded and differences noted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import DISK, MEMORY, OLTP, record, suspect, sweep, unfolded
from hypothesis import given
from hypothesis import strategies as st

from ironbench.model.note import NoteRange, note, text_note
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.record import SLICES, Record, Status
from ironbench.model.system import Choice, Load
from ironbench.report import wording
from ironbench.report.compare_page import page as comparison
from ironbench.report.wording.answers.compare_answer import not_interleaved
from ironbench.study.comparability import unlike
from ironbench.study.compare import ComparedMetric, compare, ratio
from ironbench.study.subjects import Subject
from ironbench.study.summarise import summarise

positive = st.floats(1e-6, 1e12)
repeats = st.lists(positive, min_size=1, max_size=9)


@given(positive, positive)
def test_the_ratio_of_a_to_b_times_that_of_b_to_a_is_one(a: float, b: float) -> None:
    forth, back = ratio(a, b), ratio(b, a)
    assert forth is not None
    assert back is not None
    assert forth * back == pytest.approx(1.0)


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (float("nan"), 1.0), (float("inf"), 1.0)])
def test_a_ratio_that_says_nothing_is_none(a: float, b: float) -> None:
    assert ratio(a, b) is None


@given(repeats, repeats)
def test_turning_a_comparison_round_turns_the_direction_and_keeps_the_overlap(a: list[float], b: list[float]) -> None:
    left, right = summarise(a), summarise(b)
    assert left is not None
    assert right is not None
    forth, back = (
        ComparedMetric("throughput", "higher", left, right),
        ComparedMetric("throughput", "higher", right, left),
    )
    assert forth.overlap == back.overlap
    if forth.improves is not None:
        assert forth.improves is not back.improves


def test_the_direction_comes_from_the_catalogue() -> None:
    found = compare(Subject("a", (record(throughput=100),)), Subject("b", (record(MEMORY, throughput=200),)))
    rows = {row.metric: row for row in found.cells[0].rows}
    assert rows["throughput"].improves is True
    assert rows["response_time_p99_s"].improves is True
    assert rows["transactions"].improves is None


def test_a_comparison_never_says_faster_or_slower() -> None:
    assert "faster" not in not_interleaved() and "slower" not in not_interleaved()


def test_peaks_are_compared_each_at_its_own_number_of_clients() -> None:
    a, b = sweep(DISK, 3000, 2, clients=(1, 4, 8)), sweep(MEMORY, 9000, 6, clients=(4, 8, 16))
    found = compare(Subject("a", tuple(a)), Subject("b", tuple(b)))
    assert found.peaks is not None
    assert [cell.name for cell in found.cells] == [note("load-of-clients", clients=clients) for clients in (4, 8)]
    row = found.peaks.row("throughput")
    assert row is not None
    assert row.a.n == row.b.n == 3
    basis = found.peak_basis[0].values["basis"]
    assert basis == note("peak-basis", trials=3, confirmed=True, swept=False)


@pytest.mark.parametrize("status", [Status.VOIDED, Status.FAILED, Status.CUT_SHORT])
def test_trials_that_may_not_be_compared_are_left_out_and_named(status: Status) -> None:
    bad = record(throughput=99999, status=status, causes=(text_note("the server died"),), block=1)
    found = compare(Subject("a", (record(throughput=100), bad)), Subject("b", (record(MEMORY, throughput=200),)))
    row = found.cells[0].row("throughput")
    assert row is not None
    assert (row.a.n, row.a.high) == (1, 100)
    assert tuple(wording.texts(found.left_out)) == (f"a: 1 {status.word} trial left out (the server died).",)


def test_a_side_without_usable_trials_compares_nothing() -> None:
    found = compare(Subject("a", (record(status=Status.FAILED),)), Subject("b", (record(MEMORY),)))
    assert found.peaks is None
    assert found.cells == ()
    assert found.peak_basis[0] == note("no-usable-trial")


def test_suspect_trials_enter_with_their_warning_once_per_kind() -> None:
    trials = [suspect(record(block=n), busy=0.95 + n / 100) for n in range(3)]
    found = compare(Subject("a", tuple(trials)), Subject("b", (record(MEMORY),)))
    (warning,) = found.warnings
    shared = warning.values["note"].values["note"]
    assert (shared.code, shared.values["busy"]) == ("client-saturated", NoteRange(0.95, 0.97))
    assert wording.text(warning).startswith("a: ") and "[client-saturated, 3 of 3 trials]" in wording.text(warning)


def test_runs_of_the_same_series_and_system_are_alike() -> None:
    assert unlike([record()], [record(block=1)]) == ()


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (record(choice=Choice("igen-oltp", {**OLTP.options, "scale": "8"})), "work differs"),
        (record(machine="another"), "ran on different machines"),
        (record(load=Load(duration_s=5.0, warmup_s=5.0, seed=1)), "duration"),
        (
            record(load=Load(duration_s=30.0, warmup_s=5.0, seed=1, rate=100.0)),
            "closed loop vs. open loop at 100/s",
        ),
        (record(software={"ironbench": "0.2"}), "ironbench"),
        (record(series="another"), "one after the other"),
        (record(method=SLICES, turns_since="2026-11-21T01:00:00"), "by trials vs. by slices"),
        (record(profile=ProfileRequest(("cpu",))), "no profile vs. `--profile cpu`"),
    ],
)
def test_what_is_unlike_is_said(other: object, word: str) -> None:
    base = record(software={"ironbench": "0.1"})
    found = unlike([base], [replace(other, software=other.software or base.software)])  # type: ignore[type-var,attr-defined]
    assert any(word in text for text in wording.texts(found))


def test_seeds_are_unlike_where_somebody_chose_them() -> None:
    def of(seed: int, *, chosen: bool) -> Record:
        made = record(load=Load(duration_s=30.0, seed=seed))
        return replace(made, seed_given=chosen)

    for chosen, named in ((True, True), (False, False)):
        said = unlike([of(1, chosen=chosen)], [of(2, chosen=chosen)])
        assert (note("fact-differs", fact="load.seed", a="1", b="2") in said) is named
    assert (
        unlike([of(1, chosen=True)], [of(1, chosen=False)]) == unlike([of(1, chosen=True)], [of(1, chosen=True)]) == ()
    )


def test_settings_and_layout_are_what_is_compared_and_no_flaw() -> None:
    here = replace(MEMORY, settings={"shared_buffers": "1GB"})
    assert unlike([record(series="s")], [record(here, series="s")]) == ()


def test_other_work_or_another_ironbench_is_named_before_anything_is_compared() -> None:
    from dataclasses import replace

    from ironbench.study.comparability import other_work

    one = record()
    assert other_work([one], [record(MEMORY)]) == ()
    larger = replace(one, choice=replace(one.choice, options={"scale": "8", "weight": "light"}))
    assert other_work([one], [larger]) == (
        note("work-differs", a=f"igen-oltp scale={one.choice.options['scale']}", b="scale=8"),
    )
    plain = replace(one, choice=replace(one.choice, options={"scale": "8"}))
    assert other_work([plain], [larger]) == (note("work-differs", a="igen-oltp without weight", b="weight=light"),)
    old, new = (replace(one, software={"ironbench": version}) for version in ("0.1.0", "0.2.0"))
    assert other_work([old], [new]) == (note("versions-differ", a=("0.1.0",), b=("0.2.0",)),)


@pytest.mark.parametrize(
    ("work", "metric", "words"),
    [
        (
            Choice("backup"),
            "maintenance_elapsed_s",
            "Duration of the maintenance operation is 2.00x as high with B as with A: 4.00",
        ),
        (Choice("populate"), "population_elapsed_s", "Time to insert all rows is 2.00x as high with B as with A: 4.00"),
        (Choice("storage"), "storage_bytes_per_s{profile=kdm-seq1m-q8t1-read}", ""),
        (Choice("a-workload-of-later"), "throughput", "B is 2.00x as fast as A with 8 clients: 4.00/s"),
    ],
)
def test_a_comparison_leads_with_the_result_of_its_workload(work: Choice, metric: str, words: str) -> None:
    a, b = (replace(record(throughput=1.0, metrics={metric: value}), choice=work) for value in (2.0, 4.0))
    found = compare(Subject("a", (a,)), Subject("b", (b,)))
    assert found.leading[0] == metric
    text = unfolded(comparison(found)).replace("\u202f", " ")
    assert words in text if words else "B / A" in text


@pytest.mark.parametrize(
    ("work", "metric", "words"),
    [
        (OLTP, "throughput", "A and B do not differ with 8 clients: 1,000/s vs. 1,000/s"),
        (
            Choice("backup"),
            "maintenance_elapsed_s",
            "Duration of the maintenance operation does not differ between A and B: 16.7 min vs. 16.7 min",
        ),
    ],
)
def test_equal_values_are_no_difference_in_a_direction(work: Choice, metric: str, words: str) -> None:
    a, b = (replace(record(throughput=1000.0, metrics={metric: 1000.0}), choice=work) for _ in "ab")
    text = unfolded(comparison(compare(Subject("a", (a,)), Subject("b", (b,))))).replace("\u202f", " ")
    assert words in text and "0% " not in text


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        (0.0001, 0.0099, "+0.98\u202fpoints"),
        (0.005, 0.004, "\u22120.1\u202fpoints"),
        (0.02, 0.04, "2.00x"),
    ],
)
def test_shares_next_to_nothing_are_compared_in_points(a: float, b: float, shown: str) -> None:
    found = compare(*(Subject(str(share), (record(metrics={"psi_io_some_share": share}),)) for share in (a, b)))
    row = found.cells[0].row("psi_io_some_share")
    assert row is not None and (row.ratio is None) == ("points" in shown)
    assert shown in unfolded(comparison(found))


def test_doubts_are_those_of_the_trials_that_are_compared() -> None:
    sides = []
    for system in (DISK, MEMORY):
        before = suspect(record(system, purpose="peak", series="lab"))
        sides.append(Subject(system.label, (before, suspect(record(system, purpose="lab", series="lab")))))
    doubts = wording.texts(compare(*sides).warnings)
    assert doubts and all("1 of 1 trial]" in text for text in doubts)
