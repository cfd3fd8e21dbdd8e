"""Removes and counts entries that ironbench created in a directory. These are a marked entry and everything below
it."""

from __future__ import annotations

from ironbench.engines.administration import ENTRY_MARK, ROOTS, Administration, MarkedObjects
from ironbench.errors import FailureError
from ironbench.model.session import DirectorySession, Session

_ESCAPES = (("%", "%25"), ("?", "%3F"), ("[", "%5B"))
"""The escape of each character that has a special meaning in an operation."""
_PIECE = 500
"""Maximum number of entries that one search requests. Servers usually limit the number of results for ordinary users
(slapd.conf(5), sizelimit)."""
NO_SUCH_OBJECT = 32
_HAS_OTHERS_BELOW = 66
"""Result code of a request to delete an entry below which there are other entries: notAllowedOnNonLeaf (RFC 4511)."""


class SlapdAdministration(Administration):
    marks = True
    nothing_made = "this directory contains no entries created by ironbench"

    def made(self, session: Session) -> MarkedObjects:
        assert isinstance(session, DirectorySession)
        return MarkedObjects(entries={dn: _count(session, dn) for dn in _marked(session)})

    def remove_made(self, session: Session) -> MarkedObjects:
        """Deletes marked entries and everything below them. A directory has no transactions. The leaves are deleted
        first and the marked entry last, so that an interrupted removal can be repeated."""
        return MarkedObjects(entries={top: self.remove_entries(session, top) for top in _marked(session)})

    def remove_entries(self, session: Session, top: str) -> int:
        """Deletes an entry, everything below it, and entries elsewhere that were loaded with it."""
        roots = session.query(f"search {_escaped(top)}?description?one?(ou={ROOTS}*)")
        loaded = [dn for _, values in roots for dn in (values or "").splitlines()]
        return sum(self._remove_tree(session, dn) for dn in [*loaded, top])

    def _remove_tree(self, session: Session, top: str) -> int:
        """Deletes an entry and everything below it. Deletes a limited number of entries at a time, because servers
        limit the size of search results."""
        removed = 0
        while _exists(session, top):
            found = [str(dn) for dn, *_ in session.query(f"search {_escaped(top)}?1.1?sub??sizelimit={_PIECE}")]
            gone = sum(_deleted(session, dn) for dn in sorted(found, key=_depth, reverse=True))
            if not gone:  # No visible entry could be removed. Deleting `top` itself makes the server return the reason.
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
    """Returns the DNs of marked entries directly below the base."""
    return [str(dn) for dn, *_ in session.query(f"search ,?1.1?one?(description={ENTRY_MARK}*)")]


def _count(session: DirectorySession, top: str) -> int:
    """Returns the number of entries at and below `top`. Returns 0 if the server does not allow counting them."""
    try:
        return session.count(f"search {_escaped(top)}?1.1?sub")
    except FailureError:
        return 0


def _deleted(session: Session, dn: str) -> bool:
    """Deletes an entry. Returns False if there are entries below it. A search may not have found these entries yet."""
    try:
        session.query(f"delete {_escaped(dn)}")
    except FailureError as error:
        if getattr(error, "number", 0) == _HAS_OTHERS_BELOW:
            return False
        raise
    return True


def _depth(dn: str) -> int:
    """Returns the number of commas that are not escaped by a backslash (RFC 4514)."""
    return dn.replace("\\\\", "").replace("\\,", "").count(",")


def _escaped(text: str) -> str:
    for letter, code in _ESCAPES:
        text = text.replace(letter, code)
    return text
