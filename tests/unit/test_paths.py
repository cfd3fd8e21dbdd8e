"""Paths as users write them."""

from __future__ import annotations

import pytest

from ironbench.errors import InputError
from ironbench.paths import expanded


@pytest.mark.parametrize("text", ["/" + "x" * 300, "/" + "x/" * 3000])
def test_a_path_that_is_too_long_for_any_file_is_an_input_error_that_does_not_repeat_it(text: str) -> None:
    with pytest.raises(InputError) as caught:
        expanded(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["/nowhere/file", "/proc/1/root/file", "nul\0in it"])
def test_a_path_of_no_file_is_a_path(text: str) -> None:
    assert str(expanded(text)) == text
