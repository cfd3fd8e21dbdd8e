"""Properties of workloads: options, scripts that compile, and the layout of order-entry tables."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ironbench import _core, engines, workloads
from ironbench.catalogue import metric
from ironbench.errors import InputError
from ironbench.model.system import Choice
from ironbench.workloads import igen_oltp, sql_files
from ironbench.workloads.igen_oltp.layout import CHANCES, CUSTOMERS, MOST_LINES, layout
from ironbench.workloads.pgbench import PgbenchWorkload

STANDARD = [name for name in workloads.names() if name != "script"]
CHOICES = [(name, {}) for name in STANDARD] + [("igen-oltp", {"weight": "heavy"})]


def choice(name: str, options: dict[str, str], scripts: tuple[str, ...] = ()) -> Choice:
    return Choice(name, workloads.get(name).validated(options), scripts=scripts)


def test_workloads_are_found_by_scanning() -> None:
    assert {"igen-oltp", "script", "select-only", "simple-update", "storage", "tpcb-like"} <= set(workloads.names())
    assert workloads.names() == sorted(workloads.names())
    scanned = [found.name for found in pkgutil.iter_modules(workloads.__path__) if found.ispkg]
    declared = [importlib.import_module(f"ironbench.workloads.{package}") for package in scanned]
    own = [module.WORKLOAD.name for module in declared if hasattr(module, "WORKLOAD")]
    assert workloads.names() == sorted(own), "a package goes by its workload's name"


def test_a_workload_is_found_without_importing_the_others() -> None:
    code = "import sys; from ironbench import workloads; workloads.get('igen-oltp'); print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "ironbench.workloads.igen_oltp" in said
    assert "ironbench.workloads.tpch" not in said


def test_every_score_is_a_metric_of_which_more_is_better() -> None:
    for name in workloads.names():
        assert all(metric(score).better == "higher" for score in workloads.get(name).scores), name


def test_an_unknown_workload_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="workload igen-oltpp: there is no such workload") as told:
        workloads.get("igen-oltpp")
    assert told.value.hint.startswith("did you mean igen-oltp")


@pytest.mark.parametrize("engine", ["postgres", "sqlite", "null"])
@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize(("name", "options"), CHOICES)
def test_every_script_compiles_on_every_engine(name: str, options: dict[str, str], engine: str, protocol: str) -> None:
    """The compiler also refuses undefined variables."""
    workload = workloads.get(name)
    if "data" in workload.needs and not engines.get(engine).can("data"):
        pytest.skip("without tables it has no scripts")
    workload.compile(engine, choice(name, options), protocol)


def test_nine_of_ten_light_statements_read() -> None:
    weights = igen_oltp.LIGHT
    assert len(weights) == 6 and sum(weights.values()) == 100
    scripts = workloads.get("igen-oltp").scripts("postgres", choice("igen-oltp", {}))
    reads = [script for script in scripts if not re.search(r"\b(insert|update|delete)\b", script.text)]
    assert len(reads) == 4 and sum(script.weight for script in reads) == 90
    assert {script.name: script.weight for script in scripts if script not in reads} == {
        "place_order": 5,
        "archive_order": 5,
    }


def test_a_light_transaction_is_one_statement_on_postgres() -> None:
    workload, chosen = workloads.get("igen-oltp"), choice("igen-oltp", {})
    variables = list(workload.variables(chosen.options).items())
    for script in workload.scripts("postgres", chosen):
        [sql] = _core.compile_scripts([(script.name, script.text, 1)], variables, "prepared")
        assert len(sql) == 1


@pytest.mark.parametrize(
    ("name", "options", "cause", "hint"),
    [
        ("igen-oltp", {"scale": "0"}, "0 is out of range", "use a value from 1 to 100,000"),
        ("igen-oltp", {"scale": "1.5"}, "'1.5' is not a whole number", "1 to 100,000"),
        ("igen-oltp", {"scale": "big"}, "'big' is not a whole number", "1 to 100,000"),
        ("igen-oltp", {"skew": "nan"}, "nan is out of range", "0 to 4"),
        ("igen-oltp", {"skew": "-1"}, "-1 is out of range", "0 to 4"),
        ("igen-oltp", {"weight": "haevy"}, "'haevy' is unknown", "did you mean heavy?"),
        ("igen-oltp", {"scael": "2"}, "is not an option of igen-oltp", "did you mean scale?"),
        ("tpcb-like", {"fillfactor": "5"}, "5 is out of range", "10 to 100"),
        ("script", {"scale": "2"}, "is not an option of script", "the workload `script` has no options"),
    ],
)
def test_options_are_held_to_their_bounds(name: str, options: dict[str, str], cause: str, hint: str) -> None:
    with pytest.raises(InputError) as told:
        workloads.get(name).validated(options)
    assert told.value.subject.startswith("--with ")
    assert cause in told.value.cause and hint in told.value.hint


@pytest.mark.parametrize(
    ("name", "options", "read"),
    [
        ("tpcc", {"procedures": "on", "references": "True"}, {"procedures": "true", "references": "yes"}),
        ("tpcc", {"procedures": "no", "references": "off"}, {"procedures": "false", "references": "no"}),
        ("sysbench", {"skip_trx": "true", "range_selects": "false"}, {"skip_trx": "on", "range_selects": "off"}),
    ],
)
def test_a_switch_is_read_from_a_boolean_and_from_words_of_other_programs(
    name: str, options: dict[str, str], read: dict[str, str]
) -> None:
    valid = workloads.get(name).validated(options)
    assert {option: valid[option] for option in options} == read


def test_several_options_in_one_word_are_refused_with_a_hint() -> None:
    with pytest.raises(InputError) as told:
        workloads.get("sysbench").validated({"tables": "2,table-size=1000"})
    assert told.value.hint == "write each option separately, with its own --with"


def test_options_are_kept_in_normal_form() -> None:
    found = workloads.get("igen-oltp").validated({"scale": "007", "skew": "1.50"})
    assert found == {"scale": "7", "weight": "light", "skew": "1.5"}


def test_weight_shares_the_data_and_the_size_does_not() -> None:
    workload = workloads.get("igen-oltp")

    def key(**options: str) -> str:
        return workload.content_key("postgres", workload.validated(options))

    assert key() == key(weight="heavy")
    assert len({key(), key(scale="2"), key(skew="2")}) == 3


@given(scale=st.integers(1, 100_000), skew=st.floats(0, 4))
@example(scale=1, skew=0.00390625)
def test_every_region_has_customers_and_activity(scale: int, skew: float) -> None:
    there = layout({"scale": str(scale), "skew": f"{skew:g}"})
    assert there.customers == there.last[-1] == CUSTOMERS * scale
    assert there.active[-1] == CHANCES
    for ends in (there.last, there.active):
        sizes = [end - start for start, end in zip((0, *ends), ends, strict=False)]
        assert min(sizes) >= 1
        # Ends are rounded, so with hardly any skew a region may have one more than the one before it.
        assert all(later <= earlier + 1 for earlier, later in pairwise(sizes))
    assert there.products >= MOST_LINES


def test_activity_is_more_concentrated_than_customers() -> None:
    there = layout({"scale": "10", "skew": "1"})
    assert there.active[0] / there.active[-1] > there.last[0] / there.last[-1] > 1 / 6
    even = layout({"scale": "10", "skew": "0"})
    assert even.active[0] / even.active[-1] == pytest.approx(even.last[0] / even.last[-1], rel=1e-3)


def test_a_derived_workload_says_so() -> None:
    assert "not comparable with published TPC results" in workloads.get("tpcb-like").derived


def test_only_workloads_that_write_say_so() -> None:
    assert not workloads.get("select-only").writes({})
    for name in ("igen-oltp", "tpcb-like", "simple-update"):
        assert workloads.get(name).writes({})


@pytest.mark.parametrize("scale", [19_999, 20_000])
def test_account_numbers_are_wide_where_pgbench_makes_them_so(scale: int) -> None:
    workload = workloads.get("select-only")
    assert isinstance(workload, PgbenchWorkload)
    dataset = workload.dataset("postgres", workload.validated({"scale": str(scale)}))
    assert dataset is not None
    assert any("aid bigint" in statement for statement in dataset.schema) == (scale >= 20_000)


def test_files_of_the_script_workload_have_weights(tmp_path: Path) -> None:
    a, b = tmp_path / "a.sql", tmp_path / "b@2.sql"
    a.write_text("select 1;\n")
    b.write_text("select 2;\n")
    found = workloads.get("script").scripts("postgres", choice("script", {}, (f"{a}@3", f"{b}@1")))
    assert [(source.name, source.weight) for source in found] == [(str(a), 3), (str(b), 1)]


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ((), "a script file is missing"),
        (("{}/a.sql@x",), '"x" is not a weight'),
        (("{}/a.sql@-1",), '"-1" is not a weight'),
        (("{}/a.sql@0",), "no script has a weight greater than zero"),
        (("{}/b.sql",), "no such file"),
        (("{}",), "cannot be read"),
    ],
)
def test_files_of_the_script_workload_are_validated(tmp_path: Path, files: tuple[str, ...], cause: str) -> None:
    (tmp_path / "a.sql").write_text("select 1;\n")
    with pytest.raises(InputError) as told:
        asked = choice("script", {}, tuple(f.format(tmp_path) for f in files))
        workloads.get("script").compile("postgres", asked, "prepared")
    assert cause in told.value.cause and told.value.hint


def test_a_missing_script_is_answered_with_the_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("select 1;\n")
    with pytest.raises(InputError) as told:
        workloads.get("script").scripts("postgres", choice("script", {}, (f"{tmp_path}/order.sql",)))
    assert told.value.hint == f"did you mean {tmp_path}/orders.sql?"


def test_a_syntax_error_is_shown_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "wrong.sql"
    file.write_text("\\set a 1 +\nselect :a;\n")
    with pytest.raises(InputError) as told:
        workloads.get("script").compile("postgres", choice("script", {}, (str(file),)), "prepared")
    assert str(file) in str(told.value) and ":1" in str(told.value)


def test_a_variable_may_be_set_by_another_script_of_the_same_client(tmp_path: Path) -> None:
    (tmp_path / "sets.sql").write_text("\\set x 5\nselect :x;\n")
    (tmp_path / "reads.sql").write_text("\\set y :x + 1\nselect :y;\n")
    both = (f"{tmp_path}/reads.sql", f"{tmp_path}/sets.sql@2")
    workloads.get("script").compile("postgres", choice("script", {}, both), "prepared")
    with pytest.raises(InputError, match="is never defined"):
        workloads.get("script").compile("postgres", choice("script", {}, both[:1]), "prepared")


def test_a_trigger_stays_one_statement() -> None:
    assert len(sql_files.statements(igen_oltp.FOLDER, "references", "sqlite")) == 1
    assert len(sql_files.statements(igen_oltp.FOLDER, "schema", "postgres")) == 7
    assert sql_files.statements(igen_oltp.FOLDER, "references", "null") == ()


@pytest.mark.parametrize("name", sorted(set(workloads.names()) - {"script"}))
def test_every_workload_can_be_asked_for_mistakes_in_its_scripts_whether_it_has_some_or_not(name: str) -> None:
    workload = workloads.get(name)
    choice = Choice(name, workload.validated({}))
    for engine in workload.engines:
        workload.compile(engine, choice, "prepared")
        assert workload.warnings(engine, choice, "prepared") == []
