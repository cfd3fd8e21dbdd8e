"""The example in the docstring of a wording function is what the function returns."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from typing import Any

import pytest

from ironbench.model.cost import CostRange
from ironbench.model.note import NoteRange, note
from ironbench.report import wording
from ironbench.report.wording.registry import WORDING
from ironbench.study.compare import MeanRatio
from ironbench.study.headroom import RateInterval
from ironbench.study.summarise import Summary

EXAMPLE = re.compile(r"Example(?: with (.+?))?: `(.+)`\.?")
"""The first paragraph of a docstring: the values of the parameters, and the text, which may be cut off with an `…`."""
KNOWN = {one.__name__: one for one in (note, NoteRange, MeanRatio, RateInterval, CostRange, Summary)}
MODULES = [importlib.import_module(one.name) for one in pkgutil.walk_packages(wording.__path__, f"{wording.__name__}.")]
FUNCTIONS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
}


def example(function: Callable[..., str]) -> tuple[dict[str, Any], str] | None:
    """Returns the values and the text of a docstring's example; None if the docstring has none with values."""
    paragraph = " ".join((function.__doc__ or "").split("\n\n")[0].split())
    found = EXAMPLE.fullmatch(paragraph)
    if found is None:
        return None
    values = eval(f"dict({found[1] or ''})", dict(KNOWN))
    needed = [one.name for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    return (values, found[2]) if values.keys() >= set(needed) else None


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if example(function)])
def test_an_example_in_a_docstring_is_what_the_function_returns(name: str) -> None:
    values, text = example(FUNCTIONS[name]) or ({}, "")
    returned = " ".join(FUNCTIONS[name](**values).split())
    assert returned == text or (text.endswith(" …") and returned.startswith(text.removesuffix("…")))


@pytest.mark.parametrize("code", WORDING)
def test_every_wording_of_a_code_has_an_example_with_its_values(code: str) -> None:
    assert example(WORDING[code])
