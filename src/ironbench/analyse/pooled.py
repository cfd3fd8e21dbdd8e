"""Percentiles of several trials: of all their transactions together, from merged histograms.

The median of three 99th percentiles is the 99th percentile of nothing. So every figure of several trials that is called
a percentile comes from here, in every report and verb, unless the page says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ironbench.analyse.archive import Archive
from ironbench.analyse.summarise import Summary
from ironbench.model.record import Record
from ironbench.model.sample import enough, percentile


def merged(trials: Sequence[Record], names: Sequence[str], archive: Archive) -> dict[str, Any]:
    """Histogram by name (`response_time{script=x}`), merged over the trials that have it; each trial is read once."""
    found: dict[str, Any] = {}
    for record in trials:
        histograms = archive.histograms(record.id)
        for name in names:
            if name not in histograms:
                continue
            if name in found:
                found[name].merge(histograms[name])
            else:
                found[name] = type(histograms[name]).from_bytes(histograms[name].to_bytes())
    return found


def with_pooled(found: Mapping[str, Summary], trials: Sequence[Record], archive: Archive) -> dict[str, Summary]:
    """`found`, summaries of `trials`, with pooled percentiles as centres; ranges stay those of the trials.

    Where no trial has a histogram the centre stays the median of the trials.
    """
    known = {metric: of for metric in found if (of := percentile(metric)) is not None}
    if len(trials) < 2 or not known:
        return dict(found)
    histograms = merged(trials, sorted({name for name, _ in known.values()}), archive)
    pooled = {
        metric: replace(found[metric], centre=float(histograms[name].quantiles([share])[0]))
        for metric, (name, share) in known.items()
        if name in histograms and enough(share, histograms[name].count)
    }
    return {**found, **pooled}
