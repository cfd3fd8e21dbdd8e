"""A user's scripts are identified by content, not by name."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import launch
import msgspec
import pytest
from factories import DISK, record

from ironbench import workloads
from ironbench.errors import InputError
from ironbench.lab import declare
from ironbench.lab.freeze import require_scripts
from ironbench.model.note import note
from ironbench.model.record import Record
from ironbench.model.system import Choice
from ironbench.records.index import short
from ironbench.study.comparability import other_work, unlike
from ironbench.study.subjects import by_work

WORKLOAD = workloads.get("script")


def scripted(*digests: str) -> list[Record]:
    return [record(DISK, choice=Choice("script", scripts=("my.sql",), digests=digests))]


def test_the_same_name_with_other_contents_is_other_work() -> None:
    assert other_work(scripted("a"), scripted("b")) == (note("script-differs", script="my.sql"),)
    assert note("script-differs", script="my.sql") in unlike(scripted("a"), scripted("b"))
    assert len(by_work([*scripted("a"), *scripted("b")])) == 2
    assert short(scripted("a")[0]).alike != short(scripted("b")[0]).alike
    assert other_work(scripted("a"), scripted("a")) == ()


def test_records_that_do_not_say_it_are_read_and_not_held_to_it() -> None:
    text = json.loads(msgspec.json.encode(replace(scripted("a")[0], schema=1)))
    del text["choice"]["digests"]
    old = msgspec.json.decode(json.dumps(text), type=Record)
    assert old.choice.digests == ()
    assert other_work([old], scripted("a")) == ()


def test_a_lab_does_not_go_on_with_a_script_that_was_changed(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    system = 'question = "Is it?"\n[system]\nengine = "null"\n'
    file.write_text(f'{system}[workload]\nname = "script"\nfiles = ["my.sql"]\n[vary]\nclients = [1, 2]\n')
    (tmp_path / "my.sql").write_text("SELECT 1;\n")
    lab, _ = declare.lab(file)
    require_scripts(lab)
    (tmp_path / "my.sql").write_text("SELECT 2;\n")
    with pytest.raises(InputError, match="was changed since these trials were planned"):
        require_scripts(lab)


def test_a_script_that_is_named_twice_is_refused_with_its_weights_together(tmp_path: Path) -> None:
    (tmp_path / "my.sql").write_text("SELECT 1;\n")
    mine = str(tmp_path / "my.sql")
    with pytest.raises(InputError, match="is listed twice") as caught:
        workloads.get("script").scripts("postgres", Choice("script", scripts=(f"{mine}@9", mine)))
    assert caught.value.hint.endswith(f"{mine}@10")


def test_a_script_is_read_once_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("SELECT 1;\n"))
    writer.start()
    choice = Choice("script", scripts=(f"{pipe}@2",))
    first, again = WORKLOAD.scripts("", choice), WORKLOAD.scripts("", choice)
    writer.join()
    assert first == again
    assert (first[0].text, first[0].weight) == ("SELECT 1;\n", 2)


def test_standard_input_with_a_weight_is_no_option(tmp_path: Path) -> None:
    words = ["run", "script", "-@2", "--engine", "null", "--duration", "1s", "--results", tmp_path]
    done = launch.run(words, cwd=tmp_path, stdin="SELECT 1;\n")
    assert done.returncode in (0, 3), done.stderr
