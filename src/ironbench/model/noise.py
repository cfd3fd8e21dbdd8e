"""How far a machine's own noise moves a comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noise:
    """What A against A showed on one machine under one workload, for one metric."""

    machine: str
    """Content key of the machine's fingerprint."""
    work: str
    metric: str
    """Catalogue name."""
    blocks: int
    spread: float
    """Standard deviation of the log ratio from block to block."""
    floor: float
    """Largest relative difference inside the 95 % interval of A against A: differences up to here may be noise."""
    measured_at: str
    """UTC, ISO 8601, of the first trial."""
    trial_s: float = 30.0
    """Measured time of its trials: longer ones are less noisy."""

    @property
    def source(self) -> str:
        """Where the floor was measured, in words."""
        return f"A against A, {self.blocks} blocks of {self.work} on {self.measured_at[:10]}"
