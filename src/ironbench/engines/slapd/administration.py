"""What ironbench made in a directory: entries below one that bears its mark."""

from __future__ import annotations

from ironbench.engines.administration import ENTRY_MARK, ROOTS, Administration, Made
from ironbench.errors import FailureError
from ironbench.model.session import DirectorySession, Session

_ESCAPES = (("%", "%25"), ("?", "%3F"), ("[", "%5B"))
"""What an operation would take for something else."""
_PIECE = 500
"""So many entries a server shows to whoever asks, as a rule (slapd.conf(5), sizelimit)."""
NO_SUCH_OBJECT = 32
_HAS_OTHERS_BELOW = 66
"""Result code notAllowedOnNonLeaf (RFC 4511)."""


class SlapdAdministration(Administration):
    marks = True

    def made(self, session: Session) -> Made:
        assert isinstance(session, DirectorySession)
        return Made(entries={dn: _count(session, dn) for dn in _marked(session)})

    def remove_made(self, session: Session) -> Made:
        """From the leaves up: a directory has no transactions, so the marked entry goes last, and who is interrupted
        may begin again."""
        return Made(entries={top: self.remove_entries(session, top) for top in _marked(session)})

    def remove_entries(self, session: Session, top: str) -> int:
        """With entries elsewhere that were loaded with them."""
        roots = session.query(f"search {_escaped(top)}?description?one?(ou={ROOTS}*)")
        loaded = [dn for _, values in roots for dn in (values or "").splitlines()]
        return sum(self._remove_tree(session, dn) for dn in [*loaded, top])

    def _remove_tree(self, session: Session, top: str) -> int:
        """Piece by piece: to many users a server shows no more."""
        removed = 0
        while _exists(session, top):
            found = [str(dn) for dn, *_ in session.query(f"search {_escaped(top)}?1.1?sub??sizelimit={_PIECE}")]
            gone = sum(_deleted(session, dn) for dn in sorted(found, key=_depth, reverse=True))
            if not gone:  # the server shows no entry that could be removed before, and says why
                session.query(f"delete {_escaped(top)}")
            removed += max(1, gone)
        return removed


def _exists(session: Session, dn: str) -> bool:
    try:
        return bool(session.query(f"search {_escaped(dn)}?1.1?base"))
    except FailureError as error:
        if getattr(error, "number", 0) == NO_SUCH_OBJECT:
            return False
        raise


def _marked(session: Session) -> list[str]:
    """DNs right below the base."""
    return [str(dn) for dn, *_ in session.query(f"search ,?1.1?one?(description={ENTRY_MARK}*)")]


def _count(session: DirectorySession, top: str) -> int:
    """0: the server does not let us count them."""
    try:
        return session.count(f"search {_escaped(top)}?1.1?sub")
    except FailureError:
        return 0


def _deleted(session: Session, dn: str) -> bool:
    """False: others are below it, which may not have been shown yet."""
    try:
        session.query(f"delete {_escaped(dn)}")
    except FailureError as error:
        if getattr(error, "number", 0) == _HAS_OTHERS_BELOW:
            return False
        raise
    return True


def _depth(dn: str) -> int:
    """A comma in a value is escaped by a backslash (RFC 4514)."""
    return dn.replace("\\\\", "").replace("\\,", "").count(",")


def _escaped(text: str) -> str:
    for letter, code in _ESCAPES:
        text = text.replace(letter, code)
    return text
