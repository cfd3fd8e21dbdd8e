"""Statistics of units of work that Python code measures: a histogram for each part, and the number of completed units
in each tenth of a second."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ironbench.model.work import Outcome

if TYPE_CHECKING:
    from ironbench._core import Histogram

_BUCKET_S = 0.1


class Tally:
    """Collects times and errors. May be used from several threads.

    `word` is the name of a part in metric names, such as `query`.
    """

    def __init__(self, word: str) -> None:
        self._word = word
        self._lock = threading.Lock()
        self._whole = _histogram()
        self._parts: dict[str, Histogram] = {}
        self._ended: Counter[int] = Counter()
        self._failed: Counter[int] = Counter()
        self._errors: Counter[str] = Counter()

    def done(self, part: str, began_s: float, ended_s: float) -> None:
        """Records a successful unit. Both times are on the clock of the window (`Window.elapsed_s`)."""
        took_ns = max(0, round((ended_s - began_s) * 1e9))
        with self._lock:
            self._whole.record(took_ns)
            if part:
                if part not in self._parts:
                    self._parts[part] = _histogram()
                self._parts[part].record(took_ns)
            self._ended[int(ended_s / _BUCKET_S)] += 1

    def failed(self, ended_s: float, error: str) -> None:
        """Records a unit that failed. `error` is its SQLSTATE or another short name."""
        with self._lock:
            self._errors[error] += 1
            self._failed[int(ended_s / _BUCKET_S)] += 1

    def of(self, part: str) -> Histogram:
        """Returns the histogram of one part. The histogram is empty if the part never ran."""
        with self._lock:
            return self._parts.get(part) or _histogram()

    def outcome(self, elapsed_s: float, **more: Any) -> Outcome:
        """Returns an `Outcome` with the statistics so far. `more`: values of its other fields."""
        with self._lock:
            parts = {f"response_time{{{self._word}={part}}}": times for part, times in self._parts.items()}
            return Outcome(
                transactions=self._whole.count,
                failed=self._failed.total(),
                errors=dict(self._errors),
                histograms={"response_time": self._whole, **parts},
                timeline=self._columns(elapsed_s, _BUCKET_S),
                seconds=self._columns(elapsed_s, 1.0),
                **more,
            )

    def _columns(self, elapsed_s: float, width_s: float) -> Mapping[str, bytes]:
        import numpy as np

        count = max(1, -int(-elapsed_s // width_s))
        columns = {"t_s": np.arange(count) * width_s, "retries": np.zeros(count)}
        for name, ended in (("transactions", self._ended), ("errors", self._failed)):
            columns[name] = np.zeros(count)
            for bucket, number in ended.items():
                columns[name][min(count - 1, int((bucket + 0.5) * _BUCKET_S / width_s))] += number
        return {name: values.astype("<f8").tobytes() for name, values in columns.items()}


def _histogram() -> Histogram:
    from ironbench._core import Histogram

    return Histogram()
