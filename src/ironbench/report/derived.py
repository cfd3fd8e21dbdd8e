"""Sentences that must accompany results of workloads derived from TPC benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.errors import InputError
from ironbench.model.record import Record


def sentences(records: Iterable[Record]) -> dict[str, str]:
    """Returns workload → sentence, for the workloads of the records that require one."""
    from ironbench import workloads

    texts = {}
    for name in {record.choice.workload for record in records}:
        try:
            texts[name] = workloads.get(name).derived
        except InputError:
            # A record remains readable if this version does not have its workload.
            continue
    return {name: sentence for name, sentence in texts.items() if sentence}
