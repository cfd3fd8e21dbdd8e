"""Percentiles are shown only with enough transactions to bound them; units of work have their own names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, OLTP, Shelf, SortedHistogram, codes, record
from labfactory import lab, studied, trials

from ironbench.model.curve import Curve
from ironbench.model.note import Note, note, text_note
from ironbench.model.record import Record, Status
from ironbench.model.sample import enough, least_duration_s, needed, sampled, too_few
from ironbench.model.search import Limit, Search
from ironbench.model.system import Choice, Load, System
from ironbench.records import Store
from ironbench.records.index import short
from ironbench.report import formats, trial_text, wording
from ironbench.report.as_json import run_fields
from ironbench.report.document import peaks
from ironbench.report.ending import search_summary
from ironbench.report.headline import headline
from ironbench.report.sections.curves import curves
from ironbench.study import target as targets
from ironbench.study.archive import EMPTY
from ironbench.study.curve import metrics_of
from ironbench.study.optimum import SearchResult
from ironbench.study.runstudy import studies
from ironbench.study.searched import step
from ironbench.study.study import Study
from ironbench.study.subjects import counted_in
from ironbench.study.timelines import percentiles

THREADS = System("none", "threads")


def some(count: int, workload: str = "igen-oltp", **fields: object) -> Record:
    """Returns a trial of 30 s with this number of transactions."""
    choice = OLTP if workload == "igen-oltp" else Choice(workload, {})
    system = DISK if workload in ("igen-oltp", "igen-batch") else THREADS
    return record(system, 1, count / 30, choice=choice, **fields)  # type: ignore[arg-type]


def study(*records: Record) -> Study:
    return studies(records, Shelf(records))[0]


@pytest.mark.parametrize(("share", "least"), [(0.5, 5), (0.9, 29), (0.95, 59), (0.99, 299), (0.999, 2995)])
def test_the_largest_of_the_values_bounds_a_percentile_with_95_percent_confidence(share: float, least: int) -> None:
    assert needed(share) == least
    assert share**least <= 0.05 < share ** (least - 1)
    assert not enough(share, least - 1)


def test_a_percentile_of_few_transactions_is_left_out_and_a_note_says_so() -> None:
    few = study(some(12))
    ((_, _, _, _, _, median, slow, _),) = peaks(few).texts
    assert median.endswith("s")
    assert slow == "–"
    assert "p99" not in headline(few)[0][1]
    assert [chart.id for chart in curves(few)] == ["throughput", "response_time_p50_s"]
    assert few.footnotes[0] == note("percentiles-of-too-few", units="transactions", needs=((0.99, 299),))
    enough_of_them = study(some(30_000))
    assert [chart.id for chart in curves(enough_of_them)][-1] == "response_time_p99_s"
    assert "percentiles-of-too-few" not in codes(*enough_of_them.footnotes)


def test_what_show_tells_of_a_trial_keeps_to_the_same_rule() -> None:
    text = trial_text.one(some(400), {}, {})
    row = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.split()}
    known = {name.strip(): value for name, value in row.items()}
    assert known["response_time_p999_s"] == "–"
    assert known["response_time_p99_s"] != "–"
    assert "the 99.9th percentile needs at least 2,995" in text
    assert "too few transactions: the 99th percentile needs at least 299." in trial_text.several(
        [some(12, id="a"), some(12, id="b")], None
    )


def test_lateness_and_ios_of_devices_keep_to_the_same_rule() -> None:
    reads = {"device_reads_per_s{role=data}": 9.0, "device_read_latency_p99_s{role=data}": 1.0}
    few, many = (some(count, metrics={"lateness_p99_s": 1.0, **reads}) for count in (298, 299))
    assert not sampled(few, "lateness_p99_s") and sampled(many, "lateness_p99_s")
    assert not sampled(many, "device_read_latency_p99_s{role=data}")
    assert "a trial had too few I/Os: the 99th percentile needs at least 299" in trial_text.one(many, {}, {})
    busy = record(metrics=reads | {"device_reads_per_s{role=data}": 1e6})
    assert sampled(busy, "device_read_latency_p99_s{role=data}")


def test_lists_of_records_keep_to_the_same_rule() -> None:
    assert short(some(12)).response_time_p99_s is None
    assert short(some(300)).response_time_p99_s is not None


def test_trials_without_a_count_and_scripts_by_their_own_count() -> None:
    assert sampled(record(throughput=None, metrics={"response_time_p99_s": 1.0}), "response_time_p99_s")
    of_script = {"throughput{script=pay}": 2.0, "response_time_p99_s{script=pay}": 1.0}
    one = record(metrics=of_script)
    assert not sampled(one, "response_time_p99_s{script=pay}")
    assert "response_time_p99_s{script=pay}" not in metrics_of([one])
    assert "response_time_p99_s" in metrics_of([one])
    assert too_few([record()], "transactions") == ()


def test_a_curve_by_percentile_ends_where_its_sample_does() -> None:
    trials = [some(30_000)]
    found = percentiles(trials, Shelf(trials))
    assert found is not None
    assert found.count == 4_000
    assert max(share for share, _ in found.points) == 0.999


def test_so_few_that_even_the_median_is_unbounded_have_no_curve_by_percentile() -> None:
    class Few(Shelf):
        def histograms(self, id: str) -> dict[str, SortedHistogram]:
            return {"response_time": SortedHistogram([1.0] * 4)}

    trials = [some(4)]
    assert percentiles(trials, Few(trials)) is None


def test_a_percentile_and_its_range_are_of_the_same_trials() -> None:
    """A trial too small for the percentile is in neither, so the percentile lies within its range."""
    few = replace(some(20), id="few")
    large = [replace(some(3_000), id=name) for name in ("a", "b")]
    large = [
        replace(one, metrics=one.metrics | {"response_time_p99_s": value})
        for one, value in zip(large, (0.0403, 0.0504), strict=True)
    ]

    class Times(Shelf):
        def histograms(self, id: str) -> dict[str, SortedHistogram]:
            values = {"few": [5.0] * 2_000, "a": [0.0403] * 3_000, "b": [0.0504] * 3_000}
            return {"response_time": SortedHistogram(values[id])}

    trials = [few, *large]
    found = metrics_of(trials, None, Times(trials))["response_time_p99_s"]
    assert found.n == 2 and found.low <= found.centre <= found.high, found


def test_the_headline_of_a_curve_of_clients_gives_a_mean_and_names_it() -> None:
    load = Load(duration_s=30.0, curve=Curve("clients", "ramp:1-16/30s", ((0.0, 1.0), (30.0, 16.0))))
    ((_, text),) = headline(study(record(THREADS, 16, 9880.0, choice=Choice("igen-cpu", {}), load=load)))
    assert text.startswith("reaches 9,880 pictures per second on average over the curve with at most 16 clients")


def test_the_headline_of_a_search_names_its_limits_and_what_is_limited_at_its_answer() -> None:
    limits = (Limit("device_queue_depth", 1.0),)
    most = [record(DISK, 8, 419.0, metrics={"device_queue_depth": 7.5})]
    fresh = [
        record(DISK, 1, 145.0, block=block, purpose=purpose, limits=limits, metrics={"device_queue_depth": 0.93})
        for purpose in ("sweep", "confirmation")
        for block in range(2)
    ]
    ((_, text),) = headline(study(*most, *fresh))
    assert text.startswith(
        "reaches 145 transactions per second with 1 client within the limit device_queue_depth <= 1 ("
    )
    assert "; device_queue_depth 0.93" in text


def test_the_headline_of_a_search_does_not_say_that_a_limit_is_kept_which_its_confirmations_broke() -> None:
    limits = (Limit("device_queue_depth", 1.0),)
    fresh = [
        record(DISK, 1, 145.0, block=block, purpose=purpose, limits=limits, metrics={"device_queue_depth": depth})
        for purpose, depth in (("sweep", 0.93), ("confirmation", 1.2))
        for block in range(2)
    ]
    ((_, text),) = headline(study(*fresh))
    assert text.startswith("exceeds the limit device_queue_depth <= 1") and "; device_queue_depth 1.2" in text


def test_json_marks_percentiles_of_too_few_transactions(tmp_path: Path) -> None:
    few = replace(record(), metrics={"transactions": 4.0, "response_time_p50_s": 0.1, "response_time_p99_s": 0.2})
    many = replace(few, metrics={**few.metrics, "transactions": 400.0})
    marked = [one["undersampled"] for one in run_fields([few, many], Store(tmp_path))["trials"]]
    assert marked == [["response_time_p50_s", "response_time_p99_s"], []]


def test_no_target_is_met_by_a_percentile_of_few_transactions() -> None:
    target = targets.parse("p999 < 10s at 50 tps")
    trials = [record(DISK, 1, 50.0, block=block, load=Load(rate=50.0, duration_s=30.0)) for block in range(3)]
    found = targets.attained("a", trials, target)
    assert not found.meets
    assert found.why == note("target-of-too-few", units="transactions", needs=((0.999, 2995),))


@pytest.mark.parametrize(
    ("workload", "one", "many"),
    [
        ("igen-cpu", "picture", "pictures"),
        ("igen-ram", "lottery", "lotteries"),
        ("igen-batch", "job", "jobs"),
        ("igen-oltp", "transaction", "transactions"),
    ],
)
def test_reports_call_a_unit_of_work_by_the_workload_s_own_word(workload: str, one: str, many: str) -> None:
    trials = [some(3000, workload)]
    found = study(*trials)
    assert found.counts == (one, many)
    assert f"{many} per second" in headline(found)[0][1]
    page = formats.get("html")([found]).decode()
    assert f"<small>{many}/s</small>" in page
    assert f"one {one} in a hundred" in page
    assert one == "transaction" or "transactions/s" not in page


@pytest.mark.parametrize(
    ("workload", "many"), [("tpch", "queries"), ("vacuum", "vacuums"), ("backup", "backups"), ("storage", "I/Os")]
)
def test_a_note_of_too_few_names_what_the_workload_counts(workload: str, many: str) -> None:
    few = [some(20, workload)]
    (found,) = too_few(few, counted_in(few)[1])
    assert (found.code, found.values["units"]) == ("percentiles-of-too-few", many)


def test_a_lab_shows_no_percentile_of_too_few_and_says_so() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    few = trials(plan, {"log=disk": 20.0, "log=memory": 30.0})
    found = studied(plan, few)
    assert note("percentiles-of-too-few", units="transactions", needs=((0.999, 2995),)) in found.warnings
    compared = {finding.metric for finding in found.others}
    assert "response_time_p99_s" in compared and "response_time_p999_s" not in compared
    decided = replace(plan, method=replace(plan.method, metric="response_time_p999_s"))
    (finding,) = studied(decided, few).findings
    assert not finding.ratios
    lacks = note("cell-of-too-few", cell=plan.configuration("log=disk"), units="transactions", needs=((0.999, 2995),))
    assert lacks in finding.dropped[0].values["why"]
    enough_of_them = trials(plan, {"log=disk": 2000.0, "log=memory": 3000.0})
    assert "percentiles-of-too-few" not in codes(*studied(plan, enough_of_them).warnings)


def test_a_search_says_that_its_limit_was_held_against_percentiles_of_too_few() -> None:
    search = Search("rate", 5, 5, (Limit("response_time_p99_s", 10.0),))

    def tried(rate: float, blocks: int) -> list[Record]:
        load = Load(rate=5.0, duration_s=30.0)
        return [record(DISK, 1, rate, load=load, block=block, purpose="sweep") for block in range(blocks)]

    def result(search: Search, trials: list[Record]) -> SearchResult | None:
        return found if isinstance(found := step(search, trials), SearchResult) else None

    few = next(found for blocks in range(1, 30) if (found := result(search, tried(5.0, blocks))) is not None)
    assert few.point == 5
    assert few.note.values["percentiles"] == ((0.99, 299),)
    assert "use trials of 60 s or longer" in wording.text(few.note)
    text = search_summary(search, tried(5.0, 3), EMPTY)
    assert "because a trial had too few transactions: the 99th percentile needs at least 299" in text
    assert least_duration_s(tried(5.0, 3), ["response_time_p99_s", "throughput"]) == pytest.approx(30.0 * 299 / 150)
    assert least_duration_s(tried(50.0, 3), ["response_time_p99_s"]) == 0.0
    sound = next(found for blocks in range(1, 30) if (found := result(search, tried(50.0, blocks))) is not None)
    assert "percentiles" not in sound.note.values
    assert "not shown" not in search_summary(search, tried(50.0, 3), EMPTY)


def test_a_search_gives_the_words_of_warnings_and_why_trials_were_left_out() -> None:
    load, search = Load(rate=50.0, duration_s=30.0), Search("rate", 50, 50, ())
    loud = record(DISK, 1, 50.0, load=load, warnings=(Note("not-quiet", {"text": "devices moved 9 MB/s"}),))
    void = record(DISK, 1, 50.0, load=load, block=1, status=Status.VOIDED, causes=(text_note("the engine died"),))
    text = search_summary(search, [loud, void], EMPTY)
    assert "devices moved 9 MB/s [not-quiet, 1 of 1 trial]" in text
    assert "1 invalid trial left out (the engine died)." in text
