"""What `--profile` requests: which stacks are sampled, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ironbench.model.constraints import one_of
from ironbench.model.profile import CPU, WAIT

ALL = "all"
"""Value of `--profile` that requests both kinds of samples."""
DEFAULT_HZ = 99
"""Samples per second and CPU. 99 is used instead of 100, because samples at 100 Hz could coincide with timers."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The stacks to sample during trials."""

    kinds: Annotated[tuple[Annotated[str, one_of(CPU, WAIT)], ...], Meta(min_length=1, max_length=2)]
    """`cpu`, `wait`, or both, in this order."""
    hz: Annotated[int, Meta(ge=1, le=999)] = DEFAULT_HZ
    """Samples per second and CPU for the kind `cpu`."""

    @property
    def text(self) -> str:
        """The request as the value of `--profile`, such as `cpu` or `all:499`."""
        kind = ALL if len(self.kinds) > 1 else self.kinds[0]
        return kind if self.hz == DEFAULT_HZ else f"{kind}:{self.hz}"
