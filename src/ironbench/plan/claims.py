"""Reads [expect], the claims of a lab's author, and finds the configurations that the claims are about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from ironbench import catalogue
from ironbench.errors import InputError, collected, nearest
from ironbench.model.lab import RATE_FACTOR, VALUE, Claim, Lab
from ironbench.plan import design, fixed_rates, rates, requirements
from ironbench.plan.design import DeclaredCell
from ironbench.plan.labfile import DeclaredLab

_FORMS = "write `A over B: 1.00 to 1.10`, `order: A > B > C`, or `A (response_time_p99_s): at most 10ms`"
_RATED = re.compile(rf"\s+{RATE_FACTOR}=(\S+)$")
_IN_PARENTHESES = r"\(([a-z][a-z0-9_]*(?:\{[^{}]*\})?)\)"
_METRIC = re.compile(rf"\s*{_IN_PARENTHESES}\s*$")
_ORDER = re.compile(rf"\s*order\s*(?:{_IN_PARENTHESES})?\s*:(.*)", re.DOTALL)
_ORDER_OF = re.compile(r"\s*order\b(?!=)[^:]*:.*>", re.DOTALL)
"""Pattern of a claim about an order that has unexpected text between `order` and the colon. Text with `order=` is
excluded, because it is about a factor named `order`."""
_NUMBER = r"([0-9]*\.?[0-9]+)"
_RANGES = (
    (re.compile(rf"{_NUMBER}\s+to\s+{_NUMBER}"), (1, 2)),
    (re.compile(rf"at least\s+{_NUMBER}"), (1, None)),
    (re.compile(rf"at most\s+{_NUMBER}"), (None, 1)),
)

_VALUES = re.compile(r"at least\s+(\S.*)|at most\s+(\S.*)|(\S+(?:\s\S+)?)\s+to\s+(\S.*)")


def read(declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> tuple[Claim, ...]:
    """Returns every claim with the names of its configurations. Raises InputError that contains the claim and a correct
    form."""
    return tuple(
        collected(
            partial(_claim, text, f"{declared.file}, expect.claims[{number}]", declared, cells)
            for number, text in enumerate(declared.claims)
        )
    )


def comparisons(declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> tuple[tuple[str, str], ...]:
    """Returns the pairs (compared configuration, its baseline) that get a verdict. `measure.compare` declares the
    pairs. If it is empty, they follow from the design."""
    if not declared.measure.compare:
        return design.comparisons(declared, cells)
    found = collected(
        partial(_unrated_pair, text, f"{declared.file}, measure.compare[{number}]", declared, cells)
        for number, text in enumerate(declared.measure.compare)
    )
    return tuple(dict.fromkeys(found))


def _unrated_pair(text: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> tuple[str, str]:
    pair = _pair(text, where, declared, cells)
    if not {cell.name for cell in cells}.issuperset(pair):
        raise InputError(
            where,
            "configurations at a percentage of the peak throughput can be compared only by claims",
            "move the comparison to `expect.claims`",
        )
    return pair


def _pair(text: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> tuple[str, str]:
    """Returns the two configurations of `A over B`."""
    sides = re.split(r"\s+over\s+", text.strip())
    if len(sides) != 2:
        raise InputError(where, f"{text.strip()!r} is not a comparison of two configurations", "write `A over B`")
    above, below = (_cell(side, where, declared, cells) for side in sides)
    if above == below:
        raise InputError(where, f"{above} is compared with itself", "compare two different configurations")
    return above, below


def _claim(text: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> Claim:
    if order := _ORDER.fullmatch(text):  # the names of configurations may contain colons
        metric = require_metric(order[1] or declared.measure.metric, where)
        return _order(text, order[2], metric, where, declared, cells)
    if _ORDER_OF.match(text):
        cause = f"{text!r} has text after `order` that is not a metric in parentheses"
        raise InputError(where, cause, "write `order: A > B > C`, or `order (response_time_p99_s): A > B > C`")
    head, colon, tail = text.rpartition(":")
    if not colon:
        raise InputError(where, f"{text!r} has no colon", _FORMS)
    named_metric = _METRIC.search(head)
    metric = require_metric(named_metric[1] if named_metric else declared.measure.metric, where)
    head = _METRIC.sub("", head)
    if re.search(r"\s+over\s+", head):
        return _ratio(text, head, tail, metric, where, declared, cells)
    return _value(text, head, tail, metric, where, declared, cells)


def _value(
    text: str, head: str, tail: str, metric: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]
) -> Claim:
    """Reads a limit of one configuration: `clients=4 (response_time_p99_s): at most 10ms`."""
    cell = _cell(head, where, declared, cells)
    match = _VALUES.fullmatch(tail.strip())
    if match is None:
        cause = f"{tail.strip()!r} is neither a limit nor a range"
        raise InputError(where, cause, "write `at most 10ms`, `at least 2000/s` or `5ms to 10ms`")
    least, most, low, high = match.groups()
    bounds = [requirements.quantity(metric, one, where) if one else None for one in (least or low, most or high)]
    if bounds[0] is not None and bounds[1] is not None and not bounds[0] < bounds[1]:
        raise InputError(where, f"{tail.strip()!r} is an empty range", "write the lower value first")
    return Claim(text, VALUE, metric, (cell,), bounds[0], bounds[1])


def require_metric(metric: str, where: str) -> str:
    """Returns the metric. Raises InputError that suggests similar names if the metric is unknown."""
    try:
        catalogue.metric(metric)
    except InputError as error:
        raise InputError(where, f"unknown metric {metric}", error.hint) from None
    return metric


def _order(
    text: str, tail: str, metric: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]
) -> Claim:
    if catalogue.metric(metric).better == "neither":
        raise InputError(
            where,
            f"neither higher nor lower values of {metric} are better",
            "use another metric, for example throughput",
        )
    ordered = tuple(_cell(part, where, declared, cells) for part in re.split(r"\s*>\s*", tail.strip()))
    if len(ordered) < 2:
        raise InputError(where, "an order needs at least two configurations", _FORMS)
    _distinct(ordered, where)
    return Claim(text, "order", metric, ordered)


def _ratio(
    text: str, head: str, tail: str, metric: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]
) -> Claim:
    found = _pair(head, where, declared, cells)
    low, high = _range(tail.strip(), where)
    return Claim(text, "ratio", metric, found, low, high)


def _range(text: str, where: str) -> tuple[float | None, float | None]:
    for pattern, groups in _RANGES:
        match = pattern.fullmatch(text)
        if match:
            low, high = (float(match[group]) if group else None for group in groups)
            if low is not None and high is not None and not 0 < low < high:
                raise InputError(
                    where, f"{text!r} is not a range of ratios", "write the lower ratio first: 1.00 to 1.10"
                )
            return low, high
    raise InputError(
        where, f"{text!r} is not a range of ratios", "write `1.00 to 1.10`, `at least 1.2` or `at most 0.9`"
    )


def _distinct(claims: Sequence[str], where: str) -> None:
    twice = next((name for name in claims if claims.count(name) > 1), None)
    if twice is not None:
        raise InputError(where, f"{twice} is compared with itself", "compare two different configurations")


def refuse_unrated(claims: Sequence[Claim], lab: Lab, file: str) -> None:
    """Checks claims about fixed-rate configurations. Raises InputError if the configurations are not measured, if only
    one of the compared configurations has a rate, or if the rate determines the metric of the claim."""
    rated = {setup.cell.name: setup.of for setup in lab.rated}
    known = {setup.cell.name for setup in lab.all_setups}
    skipped = tuple(f"{setup.cell.name} {RATE_FACTOR}=" for setup in lab.setups if setup.skipped)
    for number, claim in enumerate(claims):
        where = f"{file}, expect.claims[{number}]"
        unknown = [name for name in claim.cells if name not in known and not name.startswith(skipped)]
        if unknown:
            at = ", ".join(sorted(rated)[:3])
            hint = (
                f"use a configuration that is measured, for example {at}"
                if at
                else "set `measure.rates` to the percentages of the peak throughput that the claims need"
            )
            raise InputError(where, f"{unknown[0]} is not measured", hint)
        at_rates = [name for name in claim.cells if name in rated]
        if at_rates and len(at_rates) < len(claim.cells):
            raise InputError(
                where,
                "compares a configuration at a fixed rate with a configuration without a fixed rate",
                f"write a rate after both configurations, for example `{_RATE}`",
            )
        if at_rates and catalogue.base_name(claim.metric) in _AS_ASKED:
            raise InputError(
                where,
                f"at a fixed rate, the rate determines {claim.metric}",
                "use a response time: write for example (response_time_p99_s) before the colon",
            )


_RATE = f"{RATE_FACTOR}=70%"
_AS_ASKED = ("throughput", "scheduled_throughput", "transactions")


def _cell(text: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> str:
    """Returns the name of the configuration that the text describes (see `named`). A text such as `log=memory rate=70%`
    is a configuration at a percentage of the baseline's peak."""
    match = _RATED.search(text.strip())
    if match is None or any(factor.name == RATE_FACTOR for factor in declared.factors):
        return named(text, where, declared, cells)
    share = rates.read(where, match[1])[1]
    assert share is not None
    return fixed_rates.name_at(named(text.strip()[: match.start()], where, declared, cells), share)


def named(text: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> str:
    """Returns the name of the configuration that a text describes. The text is a name, one or more `factor=value`, or a
    value that only one factor has. If several configurations match, the configuration in which all other factors have
    their first value is chosen. Raises InputError if no configuration matches, or if the text is ambiguous.
    """
    text = text.strip()
    if any(cell.name == text for cell in cells):
        return text
    wanted = _assignments(text, where, declared) or _level_alone(text, where, declared, cells)
    fitting = [cell for cell in cells if all(cell.levels.get(name) == level for name, level in wanted.items())]
    plain = [
        cell
        for cell in fitting
        if all(
            cell.levels.get(factor.name) == factor.names[0] for factor in declared.factors if factor.name not in wanted
        )
    ]
    if len(fitting) == 1 or len(plain) == 1:
        return (plain or fitting)[0].name
    if not fitting:
        raise InputError(where, f"no configuration matches {text}", "`ironbench lab plan` lists the configurations")
    some = " or ".join(cell.name for cell in fitting[:3])
    raise InputError(where, f"{text} matches {len(fitting)} configurations", f"choose one of them, for example {some}")


def _assignments(text: str, where: str, declared: DeclaredLab) -> Mapping[str, str]:
    """Parses a text such as `log=memory clients=8`. Returns the value of each factor in the text. Returns nothing if
    the text contains no `=`, or if the lab has no factors. Values may contain spaces."""
    known = {factor.name: factor for factor in declared.factors}
    if not known or "=" not in text:
        return {}
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    parts = re.split(rf"(?:^|\s+)({names})=", text)
    if parts[0].strip() or len(parts) < 3:
        word = text.partition("=")[0].strip()
        raise InputError(where, f"unknown factor {word}", nearest(word, list(known)))
    levels = dict(zip(parts[1::2], (level.strip() for level in parts[2::2]), strict=True))
    for name, level in levels.items():
        if level not in known[name].names:
            raise InputError(where, f"factor {name} has no value {level}", nearest(level, list(known[name].names)))
    return levels


def _level_alone(text: str, where: str, declared: DeclaredLab, cells: Sequence[DeclaredCell]) -> Mapping[str, str]:
    owners = [factor.name for factor in declared.factors if text in factor.names]
    if len(owners) == 1:
        return {owners[0]: text}
    if owners:
        choices = " or ".join(f"{owner}={text}" for owner in owners)
        raise InputError(where, f"{text} is a value of {' and of '.join(owners)}", f"write {choices}")
    levels = [level for factor in declared.factors for level in factor.names]
    raise InputError(
        where, f"unknown configuration or value {text}", nearest(text, levels or [cell.name for cell in cells])
    )
