"""What is done to a running engine around a trial, and what it counts: each engine overrides what it can.

Everything is done over the session that is given; nothing here starts or stops an engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ironbench.model.observation import Source
from ironbench.model.session import Session

if TYPE_CHECKING:
    from ironbench.engines.maintenance import Maintaining

REQUEST = "checkpoints.request"
"""Name of the source that requests checkpoints during a trial."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the engine has written since its counters began."""

    log_bytes: int
    log_flushes: int
    checkpoints: int
    checkpoint_bytes: int


class Administration:
    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        """Fills the engine's own cache with the tables (none: all), as far as they fit; how, in words. FailureError."""
        return ""

    def hits(self, session: Session) -> Mapping[str, int]:
        """Blocks found in the engine's cache, `hit`, and not, `read`, so far; empty where it does not count them."""
        return {}

    def reset_statistics(self, session: Session) -> Mapping[str, str]:
        """Counters of use begin at zero; what was done, as conditions of the trial. For servers of ours alone."""
        return {}

    def remove_garbage(self, session: Session, tables: Sequence[str], most: float) -> Mapping[str, str]:
        """Cleans tables with more dead rows than a share `most` of the live ones; what was done, as conditions."""
        return {}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Sources that request checkpoints during a trial, and conditions. `own`: the server is ours. FailureError."""
        return (), {}

    checkpoint_setting: str = ""
    """The setting that chooses how far apart checkpoints are; "": there is none."""

    def checkpoint_settings(self, interval_s: float) -> Mapping[str, str]:
        """Settings by which a server of ours keeps that interval itself; empty where it cannot."""
        return {}

    def commits(self, session: Session) -> tuple[int, int] | None:
        """Commits counted by the server, and how many statements of this reading are not in it yet; None: no count."""
        return None

    def clients(self, session: Session) -> int:
        """Connections of clients and observers of ours, this session's own aside."""
        return 0

    def written(self, session: Session) -> Written | None:
        """None: the engine does not count what it writes."""
        return None

    def log_since_checkpoint(self, session: Session, log_bytes: int) -> int:
        """Log that a crash would have to replay; `log_bytes`: `Written.log_bytes` now."""
        return 0

    @property
    def maintaining(self) -> Maintaining:
        """Operations on a database in use. Only asked of engines with the ability `maintenance`."""
        raise NotImplementedError
