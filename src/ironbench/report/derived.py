"""Sentences that must accompany the results of workloads that are derived from TPC benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.errors import InputError
from ironbench.model.record import Record


def sentences(records: Iterable[Record]) -> dict[str, str]:
    """Returns, for each workload, the sentence, for those workloads of the records that require a sentence."""
    from ironbench import workloads

    texts = {}
    for name in {record.choice.workload for record in records}:
        try:
            texts[name] = workloads.get(name).derived
        except InputError:
            # A record is readable even if this version does not have the record's workload.
            continue
    return {name: sentence for name, sentence in texts.items() if sentence}
