"""The work of a trial: its name, and its identity by content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec

from ironbench import workloads
from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.model.system import Choice


def work(record: Record) -> str:
    """Returns a key of the work's content: workload, options, variables, scripts and data. Trials with equal keys may
    share a chart."""
    return _work(record.choice)


def same_work(a: Choice, b: Choice) -> bool:
    """Returns whether both choices are the same work on the same data. Scripts are compared by their digests, or by
    name in records before schema 2, which have no digests."""
    if _named_only(a) or _named_only(b):
        return (work_name(a), workloads.compared(a).data) == (work_name(b), workloads.compared(b).data)
    return _work(a) == _work(b)


def _named_only(choice: Choice) -> bool:
    return len(choice.digests) < len(choice.scripts)


def _work(choice: Choice) -> str:
    return msgspec.json.encode(replace(workloads.compared(choice), options=_of_work(choice)), order="sorted").decode()


def work_name(choice: Choice) -> str:
    """Returns the name of the work in the syntax of the command line, such as `igen-oltp scale=2 weight=light`. Options
    with an empty value are left out."""
    return _work_name(choice, {key: value for key, value in _values(choice).items() if value})


def _work_name(choice: Choice, values: Mapping[str, str]) -> str:
    return " ".join([choice.workload, *choice.scripts, *(f"{key}={value}" for key, value in values.items())])


def work_of_noise(choice: Choice) -> str:
    """Returns the name under which the noise of the work is stored. The name is like `work_name`, but contains the
    digests of scripts instead of their directories, and also options with an empty value."""
    if _named_only(choice):
        return _work_name(choice, _values(choice))
    files = (Path(script).name for script in choice.scripts)
    scripts = sorted(f"{digest}:{file}" for digest, file in zip(choice.digests, files, strict=False))
    return _work_name(replace(choice, scripts=tuple(scripts)), _values(choice))


def work_names(choices: Iterable[Choice]) -> str:
    """Returns the names of several works. Directories of scripts are left out if the names differ without them."""
    choices = list(choices)
    whole = dict.fromkeys(map(work_name, choices))
    short = dict.fromkeys(
        work_name(replace(one, scripts=tuple(Path(script).name for script in one.scripts))) for one in choices
    )
    return "; ".join(short if len(short) == len(whole) else whole)


def works_apart(a: Choice, b: Choice) -> tuple[str, str]:
    """Returns short names of two different works. If the workload is the same, the names contain only the options that
    differ: `igen-oltp scale=2` and `scale=4`."""
    if (a.workload, a.scripts) != (b.workload, b.scripts):
        return " ".join([a.workload, *a.scripts]), " ".join([b.workload, *b.scripts])
    known = [_values(one) for one in (a, b)]
    keys = [key for key in known[0] | known[1] if known[0].get(key) != known[1].get(key)]
    left, right = (" ".join(f"{key}={of[key]}" if key in of else f"without {key}" for key in keys) for of in known)
    return f"{a.workload} {left}", right


def _values(choice: Choice) -> dict[str, str]:
    """Returns options and variables in the syntax of the command line."""
    return dict([*sorted(_of_work(choice).items()), *sorted(choice.defines.items())])


def _of_work(choice: Choice) -> dict[str, str]:
    """Returns the options that affect what is measured. Returns all options if this version does not know their
    values."""
    return dict(_telling(choice.workload, tuple(choice.options.items())))


@cache  # cached: many trials have the same work
def _telling(name: str, options: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    known, kept = workloads.find(name), workloads.compared(Choice(name, dict(options))).options
    try:
        return known.telling(kept) if known else kept
    except InputError:
        return kept


def short_name(choice: Choice) -> str:
    """Returns `work_name` without options that have their default value."""
    known = workloads.find(choice.workload)
    usual = {option.name: option.default for option in known.options} if known else {}
    options = {name: value for name, value in choice.options.items() if value != usual.get(name)}
    return work_name(replace(choice, options=options))
