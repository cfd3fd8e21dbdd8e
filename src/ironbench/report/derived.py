"""Sentences that must accompany the results of workloads that are derived from TPC benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.errors import InputError
from ironbench.model.record import Record


def sentences(records: Iterable[Record]) -> dict[str, str]:
    """Returns the required sentences by workload. Workloads of the records that require no sentence are left out."""
    from ironbench import workloads

    texts = {}
    for name in {record.choice.workload for record in records}:
        try:
            texts[name] = workloads.get(name).derived
        except InputError:
            # A record stays readable even if this version of ironbench lacks the record's workload.
            continue
    return {name: sentence for name, sentence in texts.items() if sentence}
