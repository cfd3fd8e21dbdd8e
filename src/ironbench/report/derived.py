"""Sentences that must accompany the results of workloads derived from TPC benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.errors import InputError
from ironbench.model.record import Record


def sentences(records: Iterable[Record]) -> dict[str, str]:
    """Maps the name of each workload to its required sentence. Workloads without a required sentence are left out."""
    from ironbench import workloads

    texts = {}
    for name in {record.choice.workload for record in records}:
        try:
            texts[name] = workloads.get(name).derived
        except InputError:
            # This version of ironbench may not know the workload of a record. The report is shown without its sentence.
            continue
    return {name: sentence for name, sentence in texts.items() if sentence}
