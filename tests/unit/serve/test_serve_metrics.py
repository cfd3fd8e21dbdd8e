"""`/metrics`: running experiments in the OpenMetrics text format, for programs that have the token."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from served import LAB, POLICY, TOKEN, US, begun, stocked
from starlette.testclient import TestClient

from ironbench.host import processes
from ironbench.model.record import Status
from ironbench.printer import Printer
from ironbench.records import running_labs
from ironbench.serve import metrics
from ironbench.serve.app import application
from ironbench.serve.metrics import MetricFamily
from ironbench.serve.results import Results
from ironbench.serve.running import Experiment
from ironbench.trial.drive.live import LiveTrial

BEARER = {"authorization": f"Bearer {TOKEN}"}
MEASURES = """
import math, sys, time
from pathlib import Path
from ironbench.trial.drive.live import LiveFile
from ironbench.model.system import Cell, Load, Trial
from ironbench.records.labs import LabDirectory

class Progress:
    phase, elapsed_s, transactions, errors = "run", 2.5, 900, 3
    def seconds(self, after):
        return [(1.0, 400, 1, 0.002, 0.001, 0), (0.5, 210, 2, 0.003, 0.0015, 0)][after:]

directory = LabDirectory(Path(sys.argv[1]))
with directory.locked():
    live = LiveFile(directory.path, "s")
    live.begin(Trial(Cell('log="disk"', Load(8, duration_s=30.0)), 1), "trial 2 of 20")
    if sys.argv[2] == "run":
        live.update(Progress())
    print("measures", flush=True)
    time.sleep(60)
"""


@contextmanager
def measuring(lab: Path, phase: str = "run") -> Iterator[None]:
    """A process that measures the lab."""
    with subprocess.Popen([sys.executable, "-c", MEASURES, str(lab), phase], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"measures\n"
            yield
        finally:
            process.kill()


def client(results: Path) -> TestClient:
    return TestClient(application(Results(results), POLICY, Printer.silent()), base_url=US, follow_redirects=False)


_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{((?:{_LABEL})(?:,{_LABEL})*)\}})? (-?\d+\.\d+(?:e[+-]\d+)?)")
_META = re.compile(r"# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)")
_SUFFIX = {"gauge": "", "counter": "_total", "info": "_info"}


def read(text: str) -> dict[tuple[str, str], float]:
    """Reads an exposition by the rules of OpenMetrics 1.0: (name of the sample, labels) → value."""
    *lines, last, rest = text.split("\n")
    assert (last, rest) == ("# EOF", "")
    found: dict[tuple[str, str], float] = {}
    families: list[str] = []
    kind, seen = "", set[str]()
    for line in lines:
        if meta := _META.fullmatch(line):
            if meta[1] == "TYPE":
                assert meta[2] not in families, f"{meta[2]} is interrupted by another family"
                families.append(meta[2])
                kind, seen = meta[3], set()
                assert kind in _SUFFIX
            assert meta[2] == families[-1] and meta[1] not in seen, line
            assert meta[1] != "UNIT" or meta[2].endswith(f"_{meta[3]}"), line
            seen.add(meta[1])
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, line
        assert sample[1] == families[-1] + _SUFFIX[kind], line
        assert kind != "counter" or float(sample[3]) >= 0
        assert kind != "info" or float(sample[3]) == 1
        assert (sample[1], sample[2] or "") not in found, line
        found[sample[1], sample[2] or ""] = float(sample[3])
    return found


@pytest.mark.parametrize("text", ["", "# EOF", "a 1.0\n# EOF\n", "# TYPE a counter\na 1.0\n# EOF\n"])
def test_the_reader_of_these_tests_refuses_what_is_not_openmetrics(text: str) -> None:
    with pytest.raises((AssertionError, ValueError, IndexError)):
        read(text)


def test_metrics_need_the_token(tmp_path: Path) -> None:
    visitor = client(tmp_path)
    assert visitor.get("/metrics").status_code == 401
    assert visitor.get("/metrics", headers={"authorization": "Bearer wrong-token-of-16"}).status_code == 401
    answer = visitor.get("/metrics", headers=BEARER)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"


def test_results_without_an_experiment_have_their_counts_of_trials(tmp_path: Path) -> None:
    found = read(client(stocked(tmp_path)).get("/metrics", headers=BEARER).text)
    counts = {labels: value for (name, labels), value in found.items() if name == "ironbench_records"}
    assert set(counts) == {f'status="{status.word}"' for status in Status}
    assert counts['status="valid"'] == len(list(tmp_path.glob("**/record.json")))
    assert found["ironbench_running_experiments", ""] == 0
    assert not [name for name, _ in found if name.startswith("ironbench_trial")]


def test_a_running_lab_has_its_current_trial_and_its_progress(tmp_path: Path) -> None:
    lab = begun(tmp_path, share=0.5)
    with measuring(lab.path):
        found = read(client(tmp_path).get("/metrics", headers=BEARER).text)
    name = f'experiment="{LAB}"'
    trial = next(labels for sample, labels in found if sample == "ironbench_trial_info")
    assert r'configuration="log=\"disk\""' in trial and 'block="2"' in trial and 'phase="run"' in trial
    assert found["ironbench_running_experiments", ""] == 1
    expected = {
        "ironbench_trial_clients": 8,
        "ironbench_trial_elapsed_seconds": 2.5,
        "ironbench_trial_duration_seconds": 30,
        "ironbench_trial_transactions_total": 900,
        "ironbench_trial_failed_transactions_total": 3,
        "ironbench_trial_throughput_transactions_per_second": 420,
        "ironbench_trial_response_time_mean_seconds": 0.003,
        "ironbench_trial_response_time_stddev_seconds": 0.0015,
        "ironbench_experiment_planned_trials": 20,
    }
    assert {sample: found[sample, name] for sample in expected} == expected
    newest = lab.records()[-1].metrics
    assert found["ironbench_finished_trial_throughput_transactions_per_second", name] == newest["throughput"]
    assert found["ironbench_finished_trial_response_time_p99_seconds", name] == newest["response_time_p99_s"]
    assert found["ironbench_experiment_records", f'{name},status="valid"'] == 10


def test_a_trial_that_is_prepared_has_no_rate(tmp_path: Path) -> None:
    lab = begun(tmp_path, share=0.0)
    with measuring(lab.path, "prepare"):
        found = read(client(tmp_path).get("/metrics", headers=BEARER).text)
    assert found["ironbench_trial_transactions_total", f'experiment="{LAB}"'] == 0
    assert not [name for name, _ in found if "throughput" in name or "response_time" in name]


def test_a_lab_in_another_directory_has_only_its_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_labs, "_folder", lambda: tmp_path / "running")
    own = processes.this_process()
    state = LiveTrial(
        own.pid, time.time(), "", "a", 0, "lab", 1, "run", 1.0, 30.0, 4, seconds=((1.0, 5, 0, None, None, 0),)
    )
    one = Experiment("", "", own, state, None, "demo")
    found = read(metrics.document(Results(tmp_path), [one]))
    name = f'experiment="demo (process {os.getpid()})"'
    assert found["ironbench_trial_throughput_transactions_per_second", name] == 5
    assert not [key for key in found if key[0].startswith(("ironbench_experiment", "ironbench_finished"))]


def test_every_text_is_one_label(tmp_path: Path) -> None:
    family = MetricFamily("a", "gauge", "A \\ and\na line")
    family.add(1.5e-9, name='quote " backslash \\ line\nend')
    family.add(float("nan"), name="unknown")
    family.add(None, name="none")
    assert read(metrics.text([family, MetricFamily("b", "gauge", "Nothing.")])) == {
        ("a", r'name="quote \" backslash \\ line\nend"'): 1.5e-9
    }


def test_the_page_about_prometheus_names_every_metric(tmp_path: Path) -> None:
    lab = begun(tmp_path, share=0.5)
    with measuring(lab.path):
        found = read(client(tmp_path).get("/metrics", headers=BEARER).text)
    page = (Path(__file__).parents[3] / "docs" / "how" / "prometheus.md").read_text()
    cells = re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([a-z_0-9]+)`", cell)}
    assert named == {name.removeprefix("ironbench_") for name, _ in found} - {"info"}
