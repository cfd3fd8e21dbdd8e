"""Values for the substitution parameters of the 22 queries.

Domains and validation values are from the TPC-H specification 2.17.3, clauses 2.4.1.3 to 2.4.22.3. Distributions are
uniform unless specified otherwise. Bounds of dates and decimals are computed here and inserted as literals, so that the
same text works on every engine. Besides, an engine might compute 0.06 - 0.01 in binary floating point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import TypeVar

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_BY_REGION = {
    "AFRICA": "ALGERIA ETHIOPIA KENYA MOROCCO MOZAMBIQUE",
    "AMERICA": "ARGENTINA BRAZIL CANADA PERU UNITED_STATES",
    "ASIA": "CHINA INDIA INDONESIA JAPAN VIETNAM",
    "EUROPE": "FRANCE GERMANY ROMANIA RUSSIA UNITED_KINGDOM",
    "MIDDLE EAST": "EGYPT IRAN IRAQ JORDAN SAUDI_ARABIA",
}
REGION_OF = {nation.replace("_", " "): region for region, nations in _BY_REGION.items() for nation in nations.split()}
NATIONS = tuple(sorted(REGION_OF))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
KINDS = ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
FINISHES = ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
METALS = ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
WRAPPINGS = ("JUMBO", "LG", "MED", "SM", "WRAP")
CONTAINERS = ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
REMARKS = (("express", "pending", "special", "unusual"), ("accounts", "deposits", "packages", "requests"))
_COLOURS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro
ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon
medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder
puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
tomato turquoise violet wheat white yellow
"""
COLOURS = tuple(_COLOURS.split())


_T = TypeVar("_T")
Values = Mapping[str, str]
QUERIES = tuple(range(1, 23))
_SHARE_OF_STOCK = Decimal("0.0001")
"""The parameter `fraction` of query 11 is this number divided by the scale factor."""


class QueryRandom:
    """Random numbers for one query of one stream. The numbers come only from `Random.random`, which is guaranteed to
    give the same sequence in all Python versions."""

    def __init__(self, seed: int, query: int) -> None:
        self._random = Random(seed * 32 + query)

    def whole(self, low: int, high: int) -> int:
        """Returns a random integer from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def one(self, values: Sequence[_T]) -> _T:
        return values[self.whole(0, len(values) - 1)]

    def several(self, count: int, values: Sequence[_T]) -> list[_T]:
        """Returns distinct random values in random order (Fisher-Yates)."""
        left = list(values)
        return [left.pop(self.whole(0, len(left) - 1)) for _ in range(count)]


def random_parameters(query: int, seed: int, scale: Decimal) -> Values:
    """Returns random parameters of a query. `seed`: seed of the stream, which is the power test's seed plus the number
    of the stream (2.1.3.5, 5.3.7)."""
    values = _DRAW[query](QueryRandom(seed, query))
    if query == 11:
        values["fraction"] = f"{(_SHARE_OF_STOCK / scale).normalize():f}"
    return values


def validation(query: int) -> Values:
    """Returns the parameters of the query for which answers are published. These parameters are the same for every
    scale factor, even the fraction in query 11."""
    return _VALIDATION[query]


def _months(since: date, months: int) -> dict[str, str]:
    """Returns `since`, which must be the first day of a month, and the same day `months` later."""
    count = since.year * 12 + since.month - 1 + months
    return {"since": since.isoformat(), "before": date(count // 12, count % 12 + 1, 1).isoformat()}


def _month(first: tuple[int, int], last: tuple[int, int]) -> Callable[[QueryRandom], date]:
    """Returns a function that draws a month and returns its first day. The month is from `first` to `last`; both are
    (year, month)."""
    low, high = (year * 12 + month - 1 for year, month in (first, last))

    def draw(dice: QueryRandom) -> date:
        count = dice.whole(low, high)
        return date(count // 12, count % 12 + 1, 1)

    return draw


_ANY_YEAR = (1993, 1997)


def _year(dice: QueryRandom) -> dict[str, str]:
    return _months(date(dice.whole(*_ANY_YEAR), 1, 1), 12)


def _brand(dice: QueryRandom) -> str:
    return f"Brand#{dice.whole(1, 5)}{dice.whole(1, 5)}"


def _until(days: int) -> dict[str, str]:
    return {"until": (date(1998, 12, 1) - timedelta(days=days)).isoformat()}


def _discounts(percent: int, quantity: int) -> dict[str, str]:
    return {
        "least": f"{Decimal(percent - 1) / 100:.2f}",
        "most": f"{Decimal(percent + 1) / 100:.2f}",
        "least_percent": str(percent - 1),
        "most_percent": str(percent + 1),
        "quantity": str(quantity),
    }


def _codes(codes: Sequence[int]) -> dict[str, str]:
    return {"codes": ", ".join(f"'{code}'" for code in codes)}


def _sizes(sizes: Sequence[int]) -> dict[str, str]:
    return {"sizes": ", ".join(map(str, sizes))}


def _quantities(*least: int) -> dict[str, str]:
    """Returns ranges of quantities, from each lower bound to the bound plus ten."""
    return {f"quantity{n}": str(low) for n, low in enumerate(least, 1)} | {
        f"most{n}": str(low + 10) for n, low in enumerate(least, 1)
    }


def _by_name(names: str, values: Sequence[str]) -> dict[str, str]:
    return dict(zip(names.split(), values, strict=True))


def _market(nation: str, part_type: str) -> dict[str, str]:
    return {"nation": nation, "region": REGION_OF[nation], "type": part_type}


def _type(dice: QueryRandom) -> str:
    return f"{dice.one(KINDS)} {dice.one(FINISHES)} {dice.one(METALS)}"


_TO_1997_10 = _month((1993, 1), (1997, 10))
_DRAW: Mapping[int, Callable[[QueryRandom], dict[str, str]]] = {
    1: lambda d: _until(d.whole(60, 120)),
    2: lambda d: {"size": str(d.whole(1, 50)), "metal": d.one(METALS), "region": d.one(REGIONS)},
    3: lambda d: {"segment": d.one(SEGMENTS), "day": date(1995, 3, d.whole(1, 31)).isoformat()},
    4: lambda d: _months(_TO_1997_10(d), 3),
    5: lambda d: {"region": d.one(REGIONS)} | _year(d),
    6: lambda d: _year(d) | _discounts(d.whole(2, 9), d.whole(24, 25)),
    7: lambda d: _by_name("nation1 nation2", d.several(2, NATIONS)),
    8: lambda d: _market(d.one(NATIONS), _type(d)),
    9: lambda d: {"colour": d.one(COLOURS)},
    10: lambda d: _months(_month((1993, 2), (1995, 1))(d), 3),
    11: lambda d: {"nation": d.one(NATIONS)},
    12: lambda d: _by_name("mode1 mode2", d.several(2, MODES)) | _year(d),
    13: lambda d: {"word1": d.one(REMARKS[0]), "word2": d.one(REMARKS[1])},
    14: lambda d: _months(_month((1993, 1), (1997, 12))(d), 1),
    15: lambda d: _months(_TO_1997_10(d), 3),
    16: lambda d: {
        "brand": _brand(d),
        "type": f"{d.one(KINDS)} {d.one(FINISHES)}",
        **_sizes(d.several(8, range(1, 51))),
    },
    17: lambda d: {"brand": _brand(d), "container": f"{d.one(WRAPPINGS)} {d.one(CONTAINERS)}"},
    18: lambda d: {"quantity": str(d.whole(312, 315))},
    19: lambda d: (
        _quantities(d.whole(1, 10), d.whole(10, 20), d.whole(20, 30))
        | _by_name("brand1 brand2 brand3", [_brand(d) for _ in range(3)])
    ),
    20: lambda d: {"colour": d.one(COLOURS), "nation": d.one(NATIONS)} | _year(d),
    21: lambda d: {"nation": d.one(NATIONS)},
    22: lambda d: _codes(d.several(7, range(10, 35))),
}
_VALIDATION: Mapping[int, dict[str, str]] = {
    1: _until(90),
    2: {"size": "15", "metal": "BRASS", "region": "EUROPE"},
    3: {"segment": "BUILDING", "day": "1995-03-15"},
    4: _months(date(1993, 7, 1), 3),
    5: {"region": "ASIA"} | _months(date(1994, 1, 1), 12),
    6: _months(date(1994, 1, 1), 12) | _discounts(6, 24),
    7: {"nation1": "FRANCE", "nation2": "GERMANY"},
    8: _market("BRAZIL", "ECONOMY ANODIZED STEEL"),
    9: {"colour": "green"},
    10: _months(date(1993, 10, 1), 3),
    11: {"nation": "GERMANY", "fraction": f"{_SHARE_OF_STOCK:f}"},
    12: {"mode1": "MAIL", "mode2": "SHIP"} | _months(date(1994, 1, 1), 12),
    13: {"word1": "special", "word2": "requests"},
    14: _months(date(1995, 9, 1), 1),
    15: _months(date(1996, 1, 1), 3),
    16: {"brand": "Brand#45", "type": "MEDIUM POLISHED", **_sizes((49, 14, 23, 45, 19, 3, 36, 9))},
    17: {"brand": "Brand#23", "container": "MED BOX"},
    18: {"quantity": "300"},
    19: _quantities(1, 10, 20) | {"brand1": "Brand#12", "brand2": "Brand#23", "brand3": "Brand#34"},
    20: {"colour": "forest", "nation": "CANADA"} | _months(date(1994, 1, 1), 12),
    21: {"nation": "SAUDI ARABIA"},
    22: _codes((13, 31, 23, 29, 30, 18, 17)),
}
