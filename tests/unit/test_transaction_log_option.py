"""Where `--log-transactions` writes, and what it refuses."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ironbench.errors import InputError
from ironbench.lab.run_plan import planned
from ironbench.model.plan import Plan, record_id
from ironbench.model.purpose import Purpose
from ironbench.plan import run_file
from ironbench.trial.drive.run import Tasks, compiled_plan


def plan(workload: str = "select-only", engine: str = "null", **typed: Any) -> Plan:
    return planned(run_file.read(workload, engine=engine, seed=1, **typed))[0]


def refused(workload: str = "select-only", engine: str = "null", **typed: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        plan(workload, engine, **typed)
    assert caught.value.cause and caught.value.hint
    return caught.value


def test_a_run_of_one_trial_writes_the_file_and_each_of_several_its_own(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    alone = plan(log_transactions=log)
    assert alone.transaction_log_of(alone.trials[0]) == log
    for several in (plan(log_transactions=log, clients="1,2"), plan(log_transactions=log, repeats=2)):
        files = [several.transaction_log_of(trial) for trial in several.trials]
        assert files == [f"{log}.{record_id(several.series, trial)}" for trial in several.trials]
        assert len(set(files)) == 2
    piloted = plan(log_transactions=log, warmup="auto")
    assert piloted.transaction_log_of(piloted.trials[0]) != log, "the pilot of its warm-up is a trial of its own"


def test_the_core_is_told_of_the_log_of_a_trial_and_of_none_for_a_rehearsal(tmp_path: Path) -> None:
    asked = plan(log_transactions=str(tmp_path / "log"), sampling_rate="0.25")
    trial = asked.trials[0]

    def log(**changes: Any) -> Any:
        compiled = compiled_plan({"kind": "null"}, Tasks(), trial.cell.load, (), asked, replace(trial, **changes))
        return json.loads(compiled).get("log")

    assert log() == {"path": str(tmp_path / "log"), "sampling_rate": 0.25}
    assert log(purpose=Purpose.REHEARSAL) is None


def test_nothing_is_overwritten_and_the_directory_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("kept")
    assert refused(log_transactions=str(tmp_path / "log")).subject == "--log-transactions"
    assert refused(log_transactions=str(tmp_path)).subject == "--log-transactions"
    assert refused(log_transactions=str(tmp_path / "none" / "log")).subject == "--log-transactions"


@pytest.mark.parametrize("rate", ["0", "-1", "1.5", "nan"])
def test_a_sampling_rate_is_above_0_and_up_to_1(rate: str, tmp_path: Path) -> None:
    assert refused(log_transactions=str(tmp_path / "log"), sampling_rate=rate).subject == "--sampling-rate"


def test_a_sample_of_no_log_is_refused() -> None:
    assert refused(sampling_rate="0.5").subject == "--sampling-rate"


def test_only_scripts_that_one_process_drives_are_logged(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    assert refused("igen-cpu", engine="", log_transactions=log).subject == "--log-transactions"
    assert refused(log_transactions=log, workers="2", clients="2").subject == "--log-transactions"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any directory")
def test_a_directory_that_may_not_be_written_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert refused(log_transactions=str(tmp_path / "log")).subject == "--log-transactions"
