"""`ironbench doctor` shows its findings and exits with the documented code."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ironbench.cli.doctor import _places, diagnose, doctor
from ironbench.errors import InputError
from ironbench.host import data_dirs
from ironbench.host.doctor import probes
from ironbench.host.host_view import HostView
from ironbench.printer import Printer

MakePatient = Callable[..., HostView]


def test_severe_findings_end_with_3_and_others_with_0(host: MakePatient) -> None:
    printer = Printer(io.StringIO(), io.StringIO())
    assert diagnose(printer, host(), everything=False, json=False) == 0
    assert diagnose(printer, host(build="debug"), everything=False, json=False) == 3


def test_text_shows_the_worst_first_and_every_probe(host: MakePatient) -> None:
    out = io.StringIO()
    diagnose(Printer(out, io.StringIO()), host(build="debug"), everything=False, json=False)
    text = out.getvalue()
    lines = text.splitlines()
    assert lines[0].startswith("bare metal") and lines[2].startswith("SEVERE   core build: debug")
    for one in probes():
        assert one.name in text


def test_what_is_well_is_as_many_by_name_as_by_number(host: MakePatient) -> None:
    out = io.StringIO()
    view = host(directories=("/fast/db", "/db", "/mnt/nfs/db"))
    diagnose(Printer(out, io.StringIO()), view, everything=False, json=False)
    lines = out.getvalue().splitlines()
    (well,) = [line.removeprefix("ok: ").split(", ") for line in lines if line.startswith("ok: ")]
    several = [re.search(r" \((\d+) of \d+\)$", name) for name in well]
    assert any(several)
    assert f"{sum(int(found[1]) if found else 1 for found in several)} ok" in lines[-1]


def test_json_is_one_document_with_everything(host: MakePatient) -> None:
    out = io.StringIO()
    diagnose(Printer(out, io.StringIO()), host(), everything=False, json=True)
    document = json.loads(out.getvalue())
    assert document["worst"] == "warning"
    assert {one["name"] for one in document["diagnoses"]} == {one.name for one in probes()}
    assert document["machine"]["cpu"]["model"] == "Example Xeon 5570"


def test_a_directory_that_is_not_there_is_refused_before_the_machine_is_watched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(InputError, match="--data /nope: no such directory"):
        doctor(["/nope"], False, False)
    assert capsys.readouterr() == ("", "")


def test_the_default_directory_is_that_of_the_engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("IRONBENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _places(None)[0] == tmp_path / "ironbench" / "data"
    assert data_dirs.default("postgres", "18").parent == _places(None)[0]
