"""Samples a trial: through the core on this machine, or over SSH on the server's machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, time
from typing import Any, cast

import msgspec

from ironbench import engines
from ironbench.engines.administration import ServerLocation
from ironbench.errors import FailureError, InputError, IronbenchError, written
from ironbench.host.fingerprint import of_tree
from ironbench.host.remote import address, link, tree, watch
from ironbench.host.remote.perf import RemoteProfiler
from ironbench.host.remote.watch import Watch
from ironbench.host.tree import Tree
from ironbench.model.driven import Driven, ServerMachine
from ironbench.model.lab import Lab
from ironbench.model.note import Note, note
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.session import Session
from ironbench.model.system import Load, System, Trial
from ironbench.records import Store
from ironbench.trial import observe
from ironbench.trial.drive import profile

LOST = "link-lost"
"""Code of the warning about a trial with missing samples."""
UNSEEN = "server-unseen"
PROFILE_UNSEEN = "profile-unseen"
"""Code of the warning about a profile without the stacks of the server."""
_BOOT = "/proc/sys/kernel/random/boot_id"
_OF_READERS = "/proc/self/"
"""Prefix of files that describe the process which reads them. On the server's machine, this process is not
ironbench."""


def require(systems: Iterable[System]) -> None:
    """Checks that every server machine to be sampled accepts an SSH login. Raises InputError and FailureError."""
    for text in dict.fromkeys(system.server for system in systems if system.server):
        tree.fetched(link.connection_to(address.parse(text)))


def machines(lab: Lab) -> dict[str, Mapping[str, Any]]:
    """Returns the fingerprints of the machines of a lab's watched servers, by address. Raises InputError and
    FailureError if login fails."""
    addresses = dict.fromkeys(setup.system.server for setup in lab.measurable if setup.system.server)
    return {
        text: msgspec.to_builtins(of_tree(tree.fetched(link.connection_to(address.parse(text))))) for text in addresses
    }


def validated(system: System) -> System:
    """Checks the options without contacting the machine. Raises InputError if there is no server to watch."""
    if system.server is None:
        return system
    if system.dsn is None:
        cause = (
            f"needs an existing server in {written('system.dsn')}; servers that ironbench starts run on this machine"
        )
        raise InputError(written("system.server"), cause, f"add {written('system.dsn')}")
    return replace(system, server=address.parse(system.server).text())


@dataclass(slots=True)
class ServerWatch:
    """Watches the server's machine during one trial. Provides sources before the trial and samples after it."""

    session: Session
    load: Load
    observe: bool
    server: str
    store: Store
    profile: ProfileRequest | None
    """The stacks to sample on the server's machine."""
    _watch: Watch | None = None
    _profiler: RemoteProfiler | None = None
    _there: ServerMachine | None = None
    _warnings: list[Note] = field(default_factory=list)
    _notes: dict[str, str] = field(default_factory=dict)

    def sources(self) -> Sequence[Source]:
        """Starts sampling on the server's machine. Returns the sources that the core must sample itself."""
        if self.server and self.profile is not None:
            self._begin_profile(self.profile)
        if not (self.observe and self.server):
            return observe.sources(self.session, self.observe, clients=self.load.clients)
        try:
            there = link.connection_to(address.parse(self.server))
            machine = tree.fetched(there)
            place = engines.get(self.session.engine).administration.locate(self.session, machine)
            every = observe.sources(cast(Session, _There(self.session, place)), True, machine, self.load.clients)
            self._begin(machine, place)
        except IronbenchError as error:
            self._warnings.append(note(UNSEEN, error=str(error)))
            return [one for one in observe.sources(self.session, True, Tree(), self.load.clients) if one.kind != "file"]
        theirs = [one for one in every if one.kind == "file" and not one.target.startswith(_OF_READERS)]
        self._watch = Watch(there, theirs, self.load.duration_s)
        self._watch.begin()
        return [one for one in every if one.kind != "file"]

    def follow(self, phase: str, elapsed_s: float) -> None:
        if self._watch is not None:
            self._watch.follow(phase, elapsed_s)

    def close(self) -> None:
        """Stops sampling after a trial that was interrupted."""
        if self._profiler is not None:
            self._profiler.abandon()
        if self._watch is not None:
            self._watch.stop()

    def watched(self, driven: Driven) -> Driven:
        """Returns the trial with the samples from the server's machine."""
        driven = self._profiled(driven)
        if self._watch is None or self._there is None:
            return self._noted(driven)
        now = monotonic() - time()
        start_s = float(driven.summary.get("started_unix_s") or 0.0) + now
        seen = self._watch.end(start_s)
        self._warnings += watch.gap_notes(seen, float(driven.summary.get("elapsed_s") or 0.0))
        self._notes |= watch.words(seen, self.server)
        own = seen.own | (self._profiler.own if self._profiler is not None else frozenset())
        summary: Mapping[str, Any] = driven.summary
        if "observer_cpu_s" in summary:
            summary = {**summary, "observer_cpu_s": (summary["observer_cpu_s"] or 0.0) + seen.cpu_s}
        if seen.dropped:
            summary = {**summary, "samples_dropped": (summary.get("samples_dropped") or 0) + seen.dropped}
        return self._noted(
            replace(
                driven,
                samples={**driven.samples, **seen.samples},
                summary=summary,
                elsewhere=replace(self._there, own=own),
                metrics={**driven.metrics, **watch.metrics(seen)},
            )
        )

    def _begin_profile(self, request: ProfileRequest) -> None:
        """Starts to sample the server's stacks. If its processes cannot be seen, the trial continues without them."""
        there = link.connection_to(address.parse(self.server))
        try:
            place = engines.get(self.session.engine).administration.locate(self.session, tree.fetched(there))
            if not place.processes:
                raise FailureError(self.server, f"the server's processes cannot be seen: {place.unseen}")
            profiler = RemoteProfiler(there, request.hz, place.processes)
            profiler.begin()
        except IronbenchError as error:
            self._warnings.append(note(PROFILE_UNSEEN, error=str(error)))
            return
        self._profiler = profiler

    def _profiled(self, driven: Driven) -> Driven:
        """Returns the trial with the stacks of the server."""
        profiler, elapsed_s = self._profiler, float(driven.summary.get("elapsed_s") or 0.0)
        if profiler is None or elapsed_s <= 0:
            return driven
        try:
            found = profiler.end(float(driven.summary["started_unix_s"]), elapsed_s)
        except IronbenchError as error:
            self._warnings.append(note(PROFILE_UNSEEN, error=str(error)))
            return driven
        merged = driven.profile.merge(found) if driven.profile is not None else found
        return replace(driven, profile=merged, metrics={**driven.metrics, "profile_server_cpu_s": profiler.cpu_s})

    def _begin(self, machine: Tree, place: ServerLocation) -> None:
        ours = machine.read(_BOOT) == Tree().read(_BOOT)
        key = self.store.keep_shared("machines", msgspec.to_builtins(of_tree(machine)))
        self._there = ServerMachine(self.server, ours=ours, machine=key)
        if place.unseen:
            self._warnings.append(note(UNSEEN, processes=place.unseen))

    def _noted(self, driven: Driven) -> Driven:
        if not (self._warnings or self._notes):
            return driven
        return replace(driven, prepared=driven.prepared.merge(self._notes, self._warnings))


def of_trial(plan: Plan, session: Session, trial: Trial, store: Store) -> ServerWatch:
    request = profile.of_trial(plan, trial)
    return ServerWatch(session, trial.cell.load, plan.observe, plan.system.server or "", store, request)


class _There:
    """The session that observers of the server's machine use, with the process ids and directories on that machine."""

    def __init__(self, session: Session, place: ServerLocation) -> None:
        self._session, self._place = session, place

    def processes(self) -> Sequence[int]:
        return self._place.processes

    def directories(self) -> dict[str, str]:
        return dict(self._place.directories)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
