"""`--profile`: what it accepts and refuses, which processes and windows it samples, and what a record contains."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from factories import record

from ironbench import _core, engines
from ironbench.errors import InputError
from ironbench.lab import profiling
from ironbench.lab.run_plan import planned
from ironbench.lab.slices.side import SliceSide
from ironbench.lab.slices.turn import Slice
from ironbench.model.driven import Driven
from ironbench.model.observation import Observation
from ironbench.model.plan import Plan
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.record import SUSPICIOUS, Record
from ironbench.model.system import Load, System
from ironbench.plan import run_file
from ironbench.plan.profiles import read
from ironbench.records import judge, measures
from ironbench.records.profiles import read_profile, write_profile
from ironbench.report import wording
from ironbench.report.reproduce import run_command
from ironbench.trial.drive import profile

CPU, ALL = ProfileRequest(("cpu",)), ProfileRequest(("cpu", "wait"), 499)


@dataclass
class Sampled:
    """The result of a sampler, with two stacks."""

    kind: Sequence[str] = ("cpu", "wait")
    role: Sequence[str] = ("engine", "client")
    thread: Sequence[str] = ("postgres", "a\nb")
    reason: Sequence[str] = ("", "blocked")
    stack: Sequence[str] = ("main;PostgresMain;read_[k]", ";".join(["deep"] * 400))
    waker: Sequence[str] = ("", "main")
    samples: Sequence[int] = (99, 9)
    seconds: Sequence[float] = (0.9, 0.3)
    lost: int = 0
    truncated: int = 0
    sampler_cpu_s: float = 0.02
    unresolved_share: float = 0.0


@dataclass
class Sampler:
    """A sampler that takes no samples and remembers how it was used."""

    kinds: Sequence[str]
    hz: int
    roots: Sequence[int]
    windows: list[tuple[int, int]] = field(default_factory=list)
    running: bool = False

    def start(self) -> None:
        self.running = True

    def stop(self, windows: Sequence[tuple[int, int]]) -> Sampled:
        self.running = False
        self.windows += windows
        return Sampled()


def machine(monkeypatch: pytest.MonkeyPatch, *missing: tuple[str, str]) -> None:
    """Simulates a machine that lacks these permissions of the sampler."""
    monkeypatch.setattr(_core, "available", lambda kinds: list(missing), raising=False)
    monkeypatch.setattr(_core, "Profiler", Sampler, raising=False)


@pytest.fixture(autouse=True)
def permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)


def plan(**typed: Any) -> Plan:
    options: dict[str, Any] = {"engine": "null", "seed": 1}
    return planned(run_file.read("select-only", **options | typed))[0]


@pytest.mark.parametrize(
    ("text", "request_"),
    [("", None), ("cpu", CPU), ("wait", ProfileRequest(("wait",))), ("cpu:99", CPU), ("all:499", ALL)],
)
def test_a_profile_is_a_kind_and_perhaps_a_frequency(text: str, request_: ProfileRequest | None) -> None:
    assert read(text) == request_
    assert plan(profile=text).profile == request_
    if request_ is not None:
        assert read(request_.text) == request_


@pytest.mark.parametrize("text", ["gpu", "cpu:", "cpu:0", "cpu:1000", "cpu:-1", "cpu:1e2", "cpu:99:1", "CPU", ":99"])
def test_other_kinds_and_frequencies_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(profile=text)
    assert caught.value.subject.startswith("--profile") and caught.value.hint


@pytest.mark.parametrize("code", ["no-perf-events", "paranoid", "no-tracefs", "no-tracepoints"])
def test_a_machine_that_permits_no_profile_refuses_it_before_anything_starts(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, (code, "EACCES"))
    with pytest.raises(InputError) as caught:
        plan(profile="all")
    assert "EACCES" in caught.value.cause and caught.value.hint
    assert plan(profile="").profile is None


def test_an_ordinary_user_may_profile_servers_that_the_user_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, ("only-own", ""))
    assert plan(profile="cpu").profile == CPU


def test_on_another_machine_only_cpu_time_can_be_sampled() -> None:
    far = {"engine": "", "dsn": "postgresql://bench@db.example/shop", "server": "ssh://bench@db.example"}
    assert plan(**far, profile="cpu").profile == CPU
    for text in ("wait", "all"):
        with pytest.raises(InputError, match="only on the machine of ironbench"):
            plan(**far, profile=text)


def test_the_client_of_a_server_on_another_machine_is_sampled_here() -> None:
    session: Any = Existing([7])
    sampler: Any = profile.started(CPU, session, elsewhere=True)
    assert list(sampler.roots) == []


def test_the_profiles_of_two_machines_are_one_profile() -> None:
    one, other = profile.collected(sampled_by()), profile.collected(sampled_by(unresolved_share=0.5, lost=3))
    both = one.merge(other)
    assert (both.samples, both.lost, both.cpu_s) == (216, 3, 0.04) and len(both.stacks) == 4
    assert both.unresolved_share == pytest.approx(0.25)


@dataclass
class Existing:
    """A session of an existing server."""

    pids: Sequence[int]
    engine: str = "postgres"

    def __enter__(self) -> Existing:
        return self

    def __exit__(self, *_: object) -> None: ...

    def processes(self) -> Sequence[int]:
        return self.pids


@pytest.mark.parametrize(
    ("pids", "missing", "why"),
    [
        ([], (), "cannot see the processes"),
        ([os.getpid()], (("only-own", ""),), ""),
        ([1], (("only-own", ""),), "another user" if os.geteuid() else ""),
        ([1], (), ""),
    ],
)
def test_an_existing_server_must_be_visible_and_permitted(
    pids: Sequence[int], missing: Sequence[tuple[str, str]], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, *missing)
    monkeypatch.setattr(engines, "running", lambda *_: Existing(pids))
    setup: Any = SimpleNamespace(system=System("postgres", "a", dsn="postgresql:///shop"), origin="a")
    if not why:
        profiling.require_servers(CPU, [setup], {})
        return
    with pytest.raises(InputError, match=why):
        profiling.require_servers(CPU, [setup], {})
    profiling.require_servers(None, [setup], {})


def test_only_trials_of_a_result_are_profiled() -> None:
    asked = plan(profile="cpu")
    sampled = {one for one in Purpose if profile.of_trial(asked, replace(asked.trials[0], purpose=one))}
    assert sampled == set(Purpose) - set(AUXILIARY) - {Purpose.REHEARSAL}


def test_a_library_engine_is_profiled_in_the_processes_of_ironbench() -> None:
    def roots(engine: str) -> Sequence[int]:
        session: Any = Existing([7], engine)
        return profile.roots(session)

    assert roots("postgres") == [7]
    assert roots("sqlite") == roots("none") == [os.getpid()]


def test_only_samples_of_the_measured_window_count() -> None:
    session: Any = Existing([7])
    sampler: Any = profile.started(ALL, session)
    assert (sampler.kinds, sampler.hz, sampler.roots, sampler.running) == (("cpu", "wait"), 499, [7], True)
    profile.stopped(sampler, {"started_unix_s": time.time() - 30.0, "elapsed_s": 20.0})
    ((low, high),) = sampler.windows
    assert not sampler.running
    assert high - low == pytest.approx(20e9)
    assert low == pytest.approx((time.monotonic() - 30.0) * 1e9, abs=0.2e9)


def test_a_trial_without_a_window_has_no_profile() -> None:
    session: Any = Existing([7])
    assert profile.stopped(profile.started(CPU, session), {}) is None


def test_by_slices_only_the_slices_of_the_system_that_were_kept_count() -> None:
    session: Any = Existing([7])
    nothing: Any = None
    side = SliceSide(nothing, nothing, session, nothing, nothing, "", began_s=100.0)
    side.begin_profile(CPU)
    sampler: Any = side._profiler
    for at_s, dropped in ((0.0, False), (2.0, True), (4.0, False)):
        side.slices.append(Slice(at_s, 1.0, 10, 0, 1.0, 0.25, 0.1, 0.0, dropped=dropped))
    side.end_profile()
    assert sampler.windows == [(100_250_000_000, 101_250_000_000), (104_250_000_000, 105_250_000_000)]
    side.end_profile()
    assert side.profile is not None and len(sampler.windows) == 2


def driven(**fields: Any) -> Driven:
    summary = {"elapsed_s": 10.0, "transactions": 100, "failed": 0, "errors": {}, "cut_short": False, "aborted": False}
    sampled = profile.collected(sampled_by(**fields))
    return Driven("2026-11-21T01:00:00", alive=True, summary=summary, profile=sampled)


def sampled_by(**fields: Any) -> Any:
    return Sampled(**fields)


def test_a_record_has_the_number_of_samples_and_the_cost_of_sampling() -> None:
    found = measures.metrics(driven(lost=1))
    assert {name: found[name] for name in found if name.startswith("profile_")} == {
        "profile_samples": 108.0,
        "profile_lost_share": pytest.approx(0.01),
        "profile_cpu_s": 0.02,
    }
    assert not any(name.startswith("profile_") for name in measures.metrics(replace(driven(), profile=None)))


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({}, []),
        ({"lost": 1, "unresolved_share": 0.2}, []),
        ({"lost": 2}, ["profile-lost"]),
        ({"unresolved_share": 0.21}, ["profile-unresolved"]),
    ],
)
def test_an_incomplete_profile_has_a_note_but_does_not_flag_the_trial(
    fields: Mapping[str, Any], codes: Sequence[str]
) -> None:
    found = judge.warnings(System("postgres", "a"), Load(), driven(**fields), Observation(), None, cycles=False)
    assert [one.code for one in found] == codes and not SUSPICIOUS.intersection(codes)
    assert all(wording.texts(found))


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        ("[unknown];read", "-fno-omit-frame-pointer"),
        ("[postgres];read", "debug symbols"),
        ("main;read", "debug symbols"),
    ],
)
def test_frames_without_a_name_have_the_fix_for_their_cause(stack: str, words: str) -> None:
    fields = {"stack": (stack, stack), "unresolved_share": 0.5}
    found = judge.warnings(System("postgres", "a"), Load(), driven(**fields), Observation(), None, cycles=False)
    assert words in wording.text(found[0])


def test_every_stack_of_the_sampler_can_be_read_from_the_record(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.parquet", profile.collected(sampled_by()).stacks)
    first, second = read_profile(tmp_path / "profile.parquet")
    assert (first.stack, first.samples, first.seconds) == ("main;PostgresMain;read_[k]", 99, 0.9)
    assert (second.thread, set(second.frames), second.waker) == ("a\ufffdb", {"deep"}, "main")


def test_a_record_shows_the_request_in_the_command_that_repeats_it() -> None:
    assert "--profile all:499" in run_command([replace(record(), profile=ALL)])
    assert "--profile" not in run_command([record()])
    assert msgspec.convert(msgspec.to_builtins(replace(record(), profile=ALL)), Record).profile == ALL
