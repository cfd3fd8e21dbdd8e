"""Compares the response times of each transaction with the limit that a specification sets."""

from __future__ import annotations

from collections.abc import Mapping

from ironbench.model.driven import Driven
from ironbench.model.note import Note, note

P90 = "response_time_p90_s"
CODE = "response-limit-missed"
"""Code of the note about a response time above its limit."""


def slow(driven: Driven, limits_s: Mapping[str, float]) -> list[Note]:
    """Returns a note for each transaction whose 90th percentile is above its limit."""
    found = []
    for name, limit_s in limits_s.items():
        histogram = driven.histograms.get(f"response_time{{script={name}}}")
        if histogram is None or not histogram.count:
            continue
        if (p90_s := histogram.quantiles([0.90])[0]) > limit_s:
            found.append(note(CODE, script=name, p90_s=p90_s, limit_s=limit_s))
    return found
