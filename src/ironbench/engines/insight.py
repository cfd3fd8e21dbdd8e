"""What an engine can say of a trial from the inside. What it does not override says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironbench.model.inside import Command, Inside
from ironbench.model.observation import Sample
from ironbench.model.session import Session


class Insight:
    def begin(self, session: Session, commands: Sequence[Command], own: bool) -> Inside:
        """Before the trial: plans of its commands, nothing of which is run, and what will be missing.

        `own`: the server is ours, so that an extension that is at hand may be made in our database.
        """
        return Inside()

    def end(self, session: Session, begun: Inside, samples: Mapping[str, Sequence[Sample]], window_s: float) -> Inside:
        """After it: with what the engine's observers read at both ends of the measured window."""
        return begun
