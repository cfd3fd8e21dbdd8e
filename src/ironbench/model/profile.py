"""Sampled stacks of a trial: where the engine and the client computed, and where they waited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ironbench.model.constraints import Label, Natural, one_of
from ironbench.words import cut

CPU, WAIT = "cpu", "wait"
"""Kinds of samples: while the thread ran on a CPU, or while it waited."""
ENGINE, CLIENT = "engine", "client"
"""Roles of processes: the database engine, or the program that drives it."""
BLOCKED, CPU_QUEUE = "blocked", "cpu-queue"
"""Reasons for a wait: the thread waited for an event, or for a free CPU."""
WAITING_FOR_WORK = "waiting for work"
"""Activity of a thread that waits for the next request of a client, or for the next run of a background task."""
OUTSIDE = "[unknown]"
"""Name of a frame whose address is outside every program and library."""
KERNEL_MARK = "_[k]"
"""Suffix of the name of a kernel function."""
_LONGEST_NAME = 400
"""Maximum number of characters of a frame. Names of C++ templates are cut to this length."""
MOST_FRAMES = 128
"""Maximum number of frames of a stack. The kernel cuts stacks at 127 frames (`kernel.perf_event_max_stack`)."""


@dataclass(frozen=True, slots=True)
class SampledStack:
    """The samples of one trial with the same stack, thread name and reason."""

    kind: Annotated[str, one_of(CPU, WAIT)]
    role: Annotated[str, one_of(ENGINE, CLIENT)]
    thread: Label
    """Name of the thread, which the kernel cuts to 15 characters."""
    reason: Annotated[str, one_of("", BLOCKED, CPU_QUEUE)]
    """Why the thread waited. Empty for samples on a CPU."""
    stack: str
    """Frames joined by semicolons, outermost caller first. Names of kernel functions end in `KERNEL_MARK`; a function
    without a symbol has the name of its file in brackets."""
    waker: str
    """Stack of the thread that ended the wait, in the same form. Empty if unknown."""
    samples: Natural
    """Number of samples. For waits, the number of waits."""
    seconds: Annotated[float, Meta(ge=0, le=1e12)]
    """Seconds of the measured window that these samples represent."""

    @property
    def frames(self) -> tuple[str, ...]:
        return tuple(self.stack.split(";"))


@dataclass(frozen=True, slots=True)
class SampledProfile:
    """The stacks of a trial and the quality of the samples."""

    stacks: tuple[SampledStack, ...]
    cpu_s: float
    """CPU seconds of the sampler on the machine of ironbench."""
    unresolved_share: float
    """Fraction of the frames, weighted by samples, that have no function name."""
    lost: int
    """Number of CPU samples that were lost because the kernel's buffers were full."""

    @property
    def samples(self) -> int:
        return sum(one.samples for one in self.stacks)

    def merge(self, other: SampledProfile) -> SampledProfile:
        """Returns both profiles as one."""
        weights = [sum(one.samples * len(one.frames) for one in side.stacks) for side in (self, other)]
        unresolved = self.unresolved_share * weights[0] + other.unresolved_share * weights[1]
        share = unresolved / sum(weights) if any(weights) else 0.0
        return SampledProfile((*self.stacks, *other.stacks), self.cpu_s + other.cpu_s, share, self.lost + other.lost)


def stack_text(frames: Iterable[str]) -> str:
    """Returns the text of a stack. Replaces control characters in names, shortens long names, and keeps only the
    innermost frames of deep stacks."""
    return ";".join(cut(printable(frame), _LONGEST_NAME) for frame in list(frames)[-MOST_FRAMES:])


def printable(text: str) -> str:
    """Returns the text with control characters replaced."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in text)
