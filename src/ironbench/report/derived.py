"""Sentences that results of derived workloads must carry wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.errors import InputError
from ironbench.model.record import Record


def sentences(records: Iterable[Record]) -> dict[str, str]:
    """Workload → sentence, for those that have one."""
    from ironbench import workloads

    texts = {}
    for name in {record.choice.workload for record in records}:
        try:
            texts[name] = workloads.get(name).derived
        except InputError:
            # Records of a workload that this version does not have can still be read.
            continue
    return {name: sentence for name, sentence in texts.items() if sentence}
