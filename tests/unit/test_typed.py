"""Errors in user files are described in the file's terms, with table, field and hint."""

from __future__ import annotations

import pytest

from ironbench.catalogue import prices
from ironbench.errors import InputError, each


@pytest.mark.parametrize(
    ("text", "cause", "hint"),
    [
        ("price = 3", "sheet.toml, price: expected a TOML table, got a whole number", "docs/how/cost.md"),
        ("[prices.x]", "sheet.toml, prices: unknown field", "did you mean price?"),
        ("[price.x]\nprise = 1", "sheet.toml: price x, prise: unknown field", "did you mean price"),
        (
            "[rate.x]\nfrom = 'USD'\nto = 'EUR'\nrate = '1'",
            "sheet.toml: rate x, rate: expected a number, got text in quotes",
            "docs/how/cost.md",
        ),
        ("[price.x\n", "sheet.toml: is not valid TOML: ", "docs/how/cost.md"),
    ],
)
def test_a_wrong_type_in_a_price_sheet_is_told_in_the_words_of_the_file(text: str, cause: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        prices.read(text, "sheet.toml")
    found = next(one for one in each(caught.value) if str(one).startswith(cause))
    assert hint in found.hint
    assert "`" not in str(caught.value)
