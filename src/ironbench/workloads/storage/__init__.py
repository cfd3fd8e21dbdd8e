"""The `storage` workload: measures a device as a database uses it, without a database (docs/workloads/storage.md)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from ironbench.catalogue.storage_tests import MIB, SET_WORDS, chosen
from ironbench.errors import InputError, written
from ironbench.host import space
from ironbench.model.note import note
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Window, Work
from ironbench.ranges import MOST_BYTES, Range
from ironbench.workloads import free_memory
from ironbench.workloads.base import Option, Workload
from ironbench.workloads.storage import figures, files, passes
from ironbench.workloads.storage.files import TestFile
from ironbench.workloads.storage.passes import PassResult, PassSettings, due

if TYPE_CHECKING:
    from ironbench._core import StorageProgress

_SETS = "; ".join(f"`{name}`: {words}" for name, words in SET_WORDS.items())
_SIZE = Range(16 * MIB, MOST_BYTES, "bytes", example="1GiB")
_ALL_CACHED = "tests=cost reads the whole file from the page cache: choose a smaller size, or other tests"
_SECONDS = "duration of each pass in s; alternatively, --duration sets the total duration"


class Storage(Workload):
    name = "storage"
    doc = (
        "Measures the device of the directory --data without a database: runs the tests of common "
        "disk benchmarks, and measures the rate of durable WAL writes."
    )
    counts = ("I/O", "I/Os")
    scores = ()
    needs = ("bare machine",)
    drives = True
    own_length = True
    usual_warmup_s = 0.0
    options = (
        Option("tests", "default", f"sets of tests, joined by `+`. {_SETS}"),
        Option("size", "1GiB", "size of the test file, in whole MiB"),
        Option(
            "passes",
            "5",
            "number of passes of each test; the passes of different tests are interleaved",
            lowest=1,
            highest=100,
        ),
        Option("seconds", "5", _SECONDS, lowest=0.05, highest=3600, whole=False),
        Option("interval", "0", "pause before each pass in s", lowest=0, highest=3600, whole=False),
        Option("sustain", "60", "duration of the sustained write in s", lowest=1, highest=86400, whole=False),
        Option(
            "fill",
            "0",
            "percentage of the file system to fill before the measurement; 0: leave the file system as it is",
            lowest=0,
            highest=99,
        ),
        Option(
            "mix",
            "0",
            "percentage of reads in additional tests that mix reads and writes, e.g. 70; 0: no mixed tests",
            lowest=0,
            highest=99,
        ),
        Option(
            "compressible", "0", "percentage of zero bytes in the written data; the other bytes are random", (), 0, 100
        ),
        Option("direct", "on", "on: use direct I/O, without the page cache; off: use the page cache", ("on", "off")),
        Option(
            "io",
            "auto",
            "interface for several I/Os in flight; auto: io_uring if the system allows it, otherwise threads",
            ("auto", "io_uring", "threads"),
        ),
        Option(
            "beside",
            "",
            "additional directories to measure, separated by `,`; ironbench measures each directory "
            "separately, and then all directories and --data at the same time",
            path="directories",
        ),
    )

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        valid = super().validated(options)
        tests = chosen(valid["tests"], int(valid["mix"]))
        usual = {option.name: option.default for option in self.options}
        if valid["mix"] != usual["mix"] and all(test.direction != "mix" for test in tests):
            cause = f"tests={valid['tests']} has no test with mixed reads and writes"
            raise InputError(
                written("workload.with", f"mix={valid['mix']}"), cause, "add the set `default`, or remove it"
            )
        if valid["sustain"] != usual["sustain"] and not any(test.sustained for test in tests):
            cause = f"tests={valid['tests']} has no sustained write"
            hint = f"write `tests={valid['tests']}+sustained`, or remove it"
            raise InputError(written("workload.with", f"sustain={valid['sustain']}"), cause, hint)
        if valid["direct"] == "off" and any(test.hot for test in tests):
            cause = "tests=cost compares direct reads with reads from the page cache"
            raise InputError(
                written("workload.with", "direct=off"),
                cause,
                "remove it, or choose other tests, because both kinds of reads are the same without direct I/O",
            )
        size = _SIZE.read(written("workload.with", f"size={valid['size']}"), valid["size"])
        if size % MIB:
            raise InputError(
                written("workload.with", f"size={valid['size']}"), "is not in whole MiB", "for example 1GiB"
            )
        return valid

    def estimate_bytes(self, engine: str, options: Mapping[str, str]) -> int:
        """Returns the size of the measured file in --data."""
        return _size(options)

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        return sum(one.seconds for one in due(options, 1 + len(_beside(options))))

    def resting_s(self, options: Mapping[str, str]) -> float:
        return len(due(options, 1 + len(_beside(options)))) * float(options["interval"])

    def measures(self, options: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        tests = chosen(options["tests"], int(options["mix"]))
        return figures.metrics_of_tests(tests, int(options["passes"]), len(_beside(options)) > 0)

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        tests = chosen(options.get("tests", "default"), int(options.get("mix", "0")))
        return tuple(f"storage_bytes_per_s{{profile={test.name}}}" for test in tests)

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        if load.duration_s is None:
            raise InputError(
                written("load.transactions"),
                "has no effect on the workload `storage`",
                f"use {written('load.duration')}, or remove it",
            )

    def fits(self, system: System, choice: Choice) -> None:
        if system.layout.data is None:
            raise InputError(
                written("layout.data"),
                "is missing",
                f"give the path of a directory on the device to be measured: {written('layout.data')} DIR",
            )
        folders, size = _folders(system, choice.options), _size(choice.options)
        level, direct = int(choice.options["fill"]), choice.options["direct"] == "on"
        if any(test.hot for test in chosen(choice.options["tests"], int(choice.options["mix"]))):
            subject = written("workload.with", f"size={choice.options['size']}")
            free_memory.require(subject, 1, len(folders) * size, hint=_ALL_CACHED)
        real = [folder for folder in folders if folder not in system.layout.emulated]
        for folder in real:
            files.require(folder, size, direct)
        for folder, count in files.by_file_system(real).items():
            space.require(folder, count * size, "the test files")
            if level:
                files.require_level(folder, level, count * size)
        for device in system.layout.devices:
            for partition in device.partitions:
                if level and partition.directory in folders:
                    files.require_emulated_level(partition.directory, partition.bytes, level, size)

    def drive(self, work: Work) -> Outcome:
        from ironbench import _core

        options, direct = work.choice.options, work.choice.options["direct"] == "on"
        progress = _core.StorageProgress()
        work.on_stop(progress.stop)
        # There is no engine. CPU limits for the server therefore apply to the workload itself (`trial/drive/work.py`).
        cpus = work.system.server_cpus or work.system.client_cpus or ()
        terms = PassSettings(_size(options), int(options["compressible"]), options["io"], work.load.seed, cpus)
        folders = _folders(work.system, options)
        with ExitStack() as stack:
            if level := int(options["fill"]):
                work.show(0.0, f"fills the file system to {level}%")
                for folder, count in files.by_file_system(folders).items():
                    filler = stack.enter_context(files.filled(folder, level, count * terms.size, direct))
                    passes.fill(filler, terms, progress)
            measured = stack.enter_context(files.made(folders, terms.size, direct))
            work.show(0.0, "fills the test file")
            passes.fill(measured, terms, progress)
            used = files.used_share(folders)
            with work.window() as window:
                done = _all(work, measured, terms, window, progress)
        return _outcome(done, options, used, files.in_memory(folders))


def _all(
    work: Work, measured: list[TestFile], terms: PassSettings, window: Window, progress: StorageProgress
) -> list[PassResult]:
    options = work.choice.options
    planned = due(options, len(measured), work.load.duration_s)
    done: list[PassResult] = []
    for number, one in enumerate(planned):
        rest_until_s = window.elapsed_s + float(options["interval"])
        while window.elapsed_s < rest_until_s and not work.stopping():
            time.sleep(0.02)
        if work.stopping():
            break
        work.show(number / len(planned), f"{one.test.title} {one.test.direction}, pass {one.round + 1}")
        files_of_it = measured if one.alone is None else [measured[one.alone]]
        own = passes.seeded(terms, number)
        one_pass = passes.run(one.test, files_of_it, own, one.seconds, window.elapsed_s, progress)
        done.append(replace(one_pass, alone=one.alone))
    return done


def _outcome(done: list[PassResult], options: Mapping[str, str], used: float, in_memory: Sequence[str]) -> Outcome:
    whole = [one for one in done if not one.stopped]
    ways = sorted({one.io for one in whole})
    facts = {"direct": options["direct"], **({"io": " and ".join(ways)} if ways else {})}
    if level := int(options["fill"]):
        facts["filled"] = f"to {level}%"
    reasons = sorted({one.note for one in whole if one.note})
    return Outcome(
        transactions=sum(one.ios for one in done),
        histograms=figures.histograms(whole),
        metrics=figures.metrics(whole) | {"capacity_used_share{role=data}": used},
        series=figures.series(whole),
        facts=facts,
        warnings=(
            *(note("no-io-uring", reason=reason) for reason in reasons),
            *([note("storage-in-memory", folders=list(in_memory))] if in_memory else []),
        ),
        inside=True,
    )


def _size(options: Mapping[str, str]) -> int:
    return int(_SIZE.read(written("workload.with", "size"), options["size"]))


def _beside(options: Mapping[str, str]) -> list[str]:
    return [folder for folder in options["beside"].split(",") if folder]


def _folders(system: System, options: Mapping[str, str]) -> list[str]:
    return [folder for folder in (system.layout.data, *_beside(options)) if folder is not None]


WORKLOAD = Storage()
