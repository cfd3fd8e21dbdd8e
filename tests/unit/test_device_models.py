"""Device models: every figure has an origin, user files are validated, and models behave as their figures say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench import units
from ironbench.catalogue import devices as catalogue
from ironbench.devices import models
from ironbench.devices.device_probe import probed, probed_devices
from ironbench.errors import InputError

HOLDING = [model.name for model in catalogue.device_models().values() if model.kind != "controller"]
FLASH = [model.name for model in catalogue.device_models().values() if model.kind == "flash"]
CORE = models.for_core(catalogue.device_models())


@pytest.mark.parametrize("model", catalogue.device_models().values(), ids=lambda model: model.name)
def test_every_figure_of_a_shipped_model_says_where_it_comes_from(model: catalogue.DeviceModel) -> None:
    assert len(model.doc.split()) >= 4
    assert [figure.name for figure in model.figures] == list(catalogue.KINDS[model.kind])
    for figure in model.figures:
        assert figure.origin in ("source", "derived", "assumed"), figure
        assert len(figure.why.split()) >= 2, figure


def test_every_kind_of_device_that_labs_need_is_there() -> None:
    assert set(catalogue.KINDS) == {model.kind for model in catalogue.device_models().values()}
    for name in ("free", "ram", "hdd-7200", "hdd-10k", "hdd-15k", "ssd-sata-2008", "ssd-sata-2011", "aws-gp3"):
        assert name in catalogue.device_models()


@pytest.mark.parametrize("name", HOLDING)
def test_every_model_can_be_built_measured_and_put_into_arrays(name: str) -> None:
    assert models.normalized(f"raid0( 2,{name} )") == f"raid0(2, {name})"
    for one in probed_devices(name, CORE, capacity=4 << 30):
        assert one.iops > 0
        assert one.p99_s >= one.mean_s * 0.5


@pytest.mark.parametrize("name", FLASH)
def test_a_flash_model_has_the_figures_it_was_built_from(name: str) -> None:
    figures = {figure.name: float(figure.value) for figure in catalogue.device_models()[name].figures}
    for load, figure in (
        ({"depth": 1}, 1 / figures["read_latency"]),
        ({"depth": figures["read_depth"], "count": 50_000}, figures["read_iops"]),
    ):
        load = {key: int(value) for key, value in load.items()}
        assert probed(f"{name}(fill=100%)", CORE, load).iops == pytest.approx(figure, rel=0.06), load
    for load, figure in (
        ({"random": False, "length": 1 << 20, "depth": 32, "count": 3000}, figures["read_rate"]),
        ({"random": False, "length": 1 << 20, "depth": 32, "count": 3000, "reads": 0}, figures["write_rate"]),
    ):
        assert probed(name, CORE, load).bytes_per_s == pytest.approx(figure, rel=0.03), load


def test_figures_are_read_as_data_sheets_write_them() -> None:
    for written, value in (
        ("7.5 ms", 0.0075),
        ("163 MB/s", 163e6),
        ("125 MiB/s", 125 * 2**20),
        ("753 Mbit/s", 753e6 / 8),
        ("20 %", 0.2),
        ("7200 rpm", 7200),
        ("1.92 TB", 1.92e12),
        (32, 32),
        (True, True),
    ):
        assert units.figure("figure", written) == pytest.approx(value)
    for wrong in ("fast", "7.5 parsecs", "", "-3 ms", "1e3e3"):
        with pytest.raises(InputError, match="is not a number"):
            units.figure("figure", wrong)


def test_a_model_of_ones_own_takes_what_it_does_not_say_from_another(tmp_path: Path) -> None:
    file = tmp_path / "our disks.toml"
    file.write_text('[ours]\nlike = "hdd-10k"\ndoc = "Ours."\n[ours.figures]\nseek_average_read = "3.8 ms"\n')
    found = models.models([str(file)])["ours"]
    figures = {figure.name: figure for figure in found.figures}
    assert figures["seek_average_read"].value == pytest.approx(0.0038)
    assert figures["seek_average_read"].origin == "yours"
    assert figures["rpm"].value == 10_000
    assert models.normalized("raid1(2, ours)", [str(file)]) == "raid1(2, ours)"


def test_the_environment_names_files_with_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text('[ours]\nlike = "ram"\n')
    monkeypatch.setenv(models.VARIABLE, str(tmp_path / "a.toml"))
    assert "ours" in models.models()


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("[a", "not valid TOML", ""),
        ("a = 1", "expected a TOML table", "your own models"),
        ('[Our-SAN]\nlike = "ram"', "Our-SAN: the name cannot be used in a device expression", "lower-case letters"),
        ('["our san"]\nlike = "ram"', "the name cannot be used in a device expression", "start with a letter"),
        ('[7200rpm]\nlike = "ram"', "the name cannot be used in a device expression", "start with a letter"),
        ('[a]\nlike = "hdd-10"', "unknown model 'hdd-10'", "hdd-10k"),
        ('[a]\nkind = "dsik"', "not a kind", "disk"),
        ('[a]\nkind = "memory"', "lacks capacity, latency, rate", "like"),
        ('[a]\nlike = "ram"\n[a.figures]\nlatncy = "1 ms"', "unknown figure of a", "latency"),
        ('[a]\nlike = "ram"\n[a.figures]\nlatency = "1 month"', "is not a number", "units"),
        ('[a]\nlike = "ram"\n[a.figures]\nrate = 0', "not above zero", ""),
        ('[a]\nlike = "hdd-10k"\n[a.figures]\nwrite_cache = 3', "is not a valid value", "true or false"),
        ('[a]\nlike = "hdd-10k"\n[a.figures]\nqueue = 0.5', "0.5 is not a whole number", "whole number"),
        ('[a]\nlike = "ssd-sata"\n[a.figures]\nunits = "12.5"', "'12.5' is not a whole number", "whole number"),
        ('[a]\nlike = "ram"\ncolour = "red"', "colour: unknown field", "figures"),
        ('[a]\nlike = "ram"\n[a.figures]\nrate = { is = "1 GB/s" }', "needs `is` and one of", ""),
    ],
)
def test_a_model_that_is_not_whole_is_refused_with_its_place(text: str, said: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        catalogue.read(text, "ours.toml", catalogue.device_models())
    assert said in str(caught.value)
    assert hint in caught.value.hint


def test_figures_that_contradict_each_other_are_refused_when_the_device_is_built() -> None:
    for text, said in (
        ('[a]\nlike = "hdd-10k"\n[a.figures]\nseek_average_read = "8 ms"', "seek times are impossible"),
        ('[a]\nlike = "hdd-10k"\n[a.figures]\nrate_inner = "1 GB/s"', "rate_inner is above rate_outer"),
        ('[a]\nlike = "ssd-sata"\n[a.figures]\nread_rate = "900 MB/s"', "exceeds the rate of the interface"),
        ('[a]\nlike = "ssd-sata"\n[a.figures]\nread_latency = "900 us"', "less than read_latency"),
        ('[a]\nlike = "ssd-sata"\n[a.figures]\nunits = 70000', "70000 units exceed the maximum"),
    ):
        found = catalogue.read(text, "ours.toml", catalogue.device_models())
        with pytest.raises(InputError, match=said):
            probed_devices("a", models.for_core(found))


def test_a_mistake_in_an_expression_is_named_with_its_column_and_the_nearest_name() -> None:
    with pytest.raises(InputError) as caught:
        models.normalized("raid0(4, ssd-sata-2012)")
    assert "column 10" in caught.value.cause
    assert "ssd-sata-201" in caught.value.hint
