"""The examples in the guide's pages on lab files can be planned as written."""

import json
import os
import re
from pathlib import Path

import pytest

from ironbench.cli.lab import plan as planned
from ironbench.devices.capability import lacking


@pytest.fixture(autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Existing data in the default directory must not affect which configurations are skipped."""
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path_factory.mktemp("data")))


ROOT = Path(__file__).parents[2]
PAGES = (
    "how/lab-files",
    "how/vary-anything",
    "how/connections",
    "how/gate",
    "how/two-settings",
    "how/disk-before-after",
    "how/upgrade",
    "how/add-an-index",
    "understand/designs",
    "understand/same-load",
)
EXAMPLES = [
    example
    for page in PAGES
    for example in re.findall(
        r"^```toml\n(question.*?)^```", (ROOT / "docs" / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL
    )
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.splitlines()[0])
def test_an_example_can_be_planned(example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, data = tmp_path / "lab", tmp_path / "mnt"
    for folder in (here, data / "old", data / "new"):
        folder.mkdir(parents=True)
    file = here / "example.toml"
    file.write_text(example.replace("/mnt/", f"{data}/"))
    scripts = set(re.findall(r'"([\w-]+\.(?:sql|dump))"', example))
    for name in scripts:
        (here / name).write_text("SELECT :client_id;\n" if name.endswith(".sql") else "CREATE TABLE sale (id int);\n")
    assert planned(str(file), "1h", json=False) == 0
    assert "skipped" not in capsys.readouterr().out
    assert {path.name for path in here.iterdir()} == {"example.toml", *scripts}


@pytest.mark.parametrize("file", sorted((ROOT / "labs").glob("*.toml")), ids=lambda path: path.name)
def test_a_lab_of_ours_can_be_planned_within_its_quarter_of_an_hour(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = lacking()
    if missing and re.search(r"\b(hdd|ssd)-", file.read_text()):
        pytest.skip(f"emulated devices need {missing}")
    assert planned(str(file), "15m", json=True) == 0
    assert json.loads(capsys.readouterr().out)["estimate_s"] <= 15 * 60


@pytest.mark.parametrize("file", sorted((ROOT / "labs" / "large").glob("*.toml")), ids=lambda path: path.name)
def test_a_lab_for_a_larger_machine_can_be_planned_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan also takes less than a quarter of an hour. It starts nothing, so the CPUs need not exist."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    assert planned(str(file), "15m", json=False) == 0


def test_there_is_an_example_of_every_design() -> None:
    text = "".join(EXAMPLES)
    assert len(EXAMPLES) >= 6
    assert 'design = "full"' in text and 'design = "explicit"' in text and "[expect]" in text
