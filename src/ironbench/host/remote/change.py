"""Changes on a remote machine: permission checks, immediate actions, and changes that are undone after a trial.

A lasting change is made by a shell script on the remote machine, which undoes it when its standard input ends or goes
silent (`remote.script`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic, sleep

from ironbench.errors import FailureError, InputError, IronbenchError, shortened, written
from ironbench.host.remote import link, script
from ironbench.host.remote.link import Link, quoted
from ironbench.host.remote.script import SILENT_S, RunningScript

_LEFT_S = SILENT_S + 10.0
"""Seconds within which a machine undoes the changes of a lost connection."""
RESTART_S = 600.0
"""Timeout for a restart; a server that replays its WAL can take this long."""
_OUTPUT_LINES = 20
CONTROL = "system.control"
_PACKAGES = "util-linux or coreutils"
_UNIT = re.compile(r"[A-Za-z0-9:_.@\\-]+\.service")
DROP = "sync; echo 3 > /proc/sys/vm/drop_caches"
"""Shell command equivalent to `drop_caches` (proc_sys_vm(5)), which frees clean pages, directory entries and inodes."""
_CACHES = "/proc/sys/vm/drop_caches"
_ROOT = '[ "$(id -u)" = 0 ]'


@dataclass(frozen=True, slots=True)
class Rights:
    """How ironbench gets the permissions for a change."""

    sudo: str = ""
    """Prefix of commands: `sudo -n ` or an empty text."""


def require_pin(there: Link, server: int, online: str, cpus: tuple[int, ...]) -> Rights:
    """Checks that `cpus` exist on the machine, and that process `server` may be pinned to them. Raises InputError or
    FailureError."""
    known = _numbers(online)
    if missing := [cpu for cpu in cpus if known and cpu not in known]:
        raise InputError(written("limits.server_cpus"), f"that machine has no CPU {missing[0]}", f"its CPUs: {online}")
    require_programs(there, CONTROL, dict.fromkeys(("taskset", "timeout", "grep", "sed"), _PACKAGES))
    allowed = f'{_ROOT} || [ "$(id -u)" = "$(stat -c %u /proc/{server})" ]'
    # The hint warns the user: taskset can start any program, so a user who may run it with sudo has the rights of root.
    way = (
        f"log in as the user of the server process (set {written('system.server')}), or allow the login user to run "
        "the command with sudo, which is equivalent to root rights"
    )
    return _rights(there, allowed, ("taskset",), "is not allowed to pin the server's processes to CPUs", way)


def require_cold(there: Link, restart: str) -> tuple[Rights, str]:
    """Checks that the server can be restarted and the page cache dropped; returns the permissions and the restart
    command.

    Raises InputError or FailureError.
    """
    require_programs(there, CONTROL, dict.fromkeys(("tee", "sync"), _PACKAGES))
    caches = _rights(there, f"[ -w {_CACHES} ]", ("tee", _CACHES), "is not allowed to drop the page cache")
    if not is_unit(restart):
        return caches, restart
    asked = there.run(
        f"[ -d /run/systemd/system ] || exit 3; systemctl show --property LoadState --value {quoted(restart)}"
    )
    subject = written("system.restart", restart)
    if asked.status == 3:
        cause = "there is no systemd on that machine"
        raise InputError(subject, cause, "use a command that restarts the server instead")
    if asked.output.strip() != b"loaded":
        cause = f"that machine has no such unit ({asked.output.decode('utf-8', 'replace').strip() or 'no answer'})"
        raise InputError(subject, cause, "`systemctl list-units --type service` on that machine lists the units")
    units = _rights(there, _ROOT, ("systemctl", "restart", restart), "is not allowed to restart a service")
    return caches, f"{units.sudo}systemctl restart {quoted(restart)}"


def is_unit(restart: str) -> bool:
    """Returns whether a restart is given as a systemd unit (`NAME.service`) and not as a command."""
    return _UNIT.fullmatch(restart) is not None


def restart(there: Link, command: str) -> None:
    """Restarts the server. The command completes even if ironbench ends. Raises FailureError with the command's output.

    Waits for the end of the command itself, because a server that the command starts may keep the output open
    indefinitely.
    """
    answer = there.run(_restarting(command), limit_s=RESTART_S)
    lines = answer.output.decode("utf-8", "replace").strip().splitlines()
    status = lines.pop().removeprefix(f"{_ENDED} ") if lines else "unknown"
    if status != "0":
        words = shortened(" ".join(lines) or answer.complaint or "no output", 300)
        hint = "run the command by hand on that machine; the server may not be running now"
        raise FailureError(written("system.restart"), f"exit status {status}: {words}", hint)


_ENDED = "ironbench-ended"


def _restarting(command: str) -> str:
    return f"""{{ sh -c {quoted(command)} </dev/null 2>&1; status=$?; echo; echo "{_ENDED} $status"; }} | {{
kept=
while IFS= read -r line; do
  case $line in "{_ENDED} "*) echo "$kept" | tail -n {_OUTPUT_LINES}; echo "$line"; exit;; esac
  kept="$kept
$line"
done; }}"""


def drop_caches(there: Link, rights: Rights) -> None:
    """Drops the page cache of the machine. Raises FailureError."""
    answer = there.run(f"sync; echo 3 | {rights.sudo}tee {_CACHES} >/dev/null", limit_s=RESTART_S)
    if answer.status != 0:
        raise FailureError(there.address.text(), f"the page cache was not dropped: {answer.complaint}")


@dataclass(slots=True)
class Pin:
    """Pins a remote server's processes to CPUs from `begin` to `end`."""

    link: Link
    rights: Rights
    server: int
    """The server's main process, whose children are the server's other processes."""
    cpus: str
    """List of CPUs in taskset(1) format."""
    before: str = ""
    """CPUs to which the server was pinned before."""
    _running: RunningScript | None = None

    def begin(self) -> None:
        """Pins the server. Raises FailureError.

        After a connection was lost, first waits until the machine has undone the changes of that connection. Otherwise,
        the script would take the CPUs of the earlier pinning for the server's usual CPUs, and the server would remain
        pinned to them.
        """
        sleep(max(0.0, _left.get(self.link, 0.0) - monotonic()))
        try:
            running = link.waited(script.begun(self.link, _pinning(self.rights.sudo, self.server, self.cpus)))
        except IronbenchError:
            _leave(self.link)
            raise
        if running.first[:1] != ["done"]:
            link.waited(running.end())
            if not running.first:
                _leave(self.link)
            why = " ".join(running.first[1:]) or "no answer"
            raise FailureError(self.link.address.text(), f"cannot pin the server to CPUs {self.cpus}: {why}")
        self._running, self.before = running, " ".join(running.first[1:])

    def end(self) -> str:
        """Undoes the pinning. If the pinning was not in effect the whole time, returns the reason. Otherwise, returns
        "". A second call has no effect."""
        running, self._running = self._running, None
        words = ["undone", self.cpus] if running is None else _words(link.waited(running.end()))
        if words[:1] != ["undone"]:
            _leave(self.link)
            return f"the connection was lost; the remote machine removed the pinning within {SILENT_S} s"
        if not (cpus := " ".join(words[1:])):
            return "the server ended or was restarted"
        return "" if _numbers(cpus) == _numbers(self.cpus) else f"another program pinned the server to CPUs {cpus}"


_left: dict[Link, float] = {}
"""For each lost connection, the time (`time.monotonic`) by which the remote machine has undone the connection's
changes."""


def _words(output: bytes) -> list[str]:
    return output.decode("utf-8", "replace").split()


def _leave(there: Link) -> None:
    _left[there] = monotonic() + _LEFT_S


def require_programs(there: Link, field: str, packages: Mapping[str, str]) -> None:
    """Raises InputError if a program is missing on the machine. `field`: the field that needs the programs. `packages`:
    the package of each program."""
    loop = f'for one in {" ".join(packages)}; do command -v "$one" >/dev/null || echo "$one"; done'
    if missing := there.run(loop).output.decode("utf-8", "replace").split():
        cause = f"{there.address.text()} has no program {missing[0]}"
        raise InputError(written(field), cause, f"install the program on that machine (package {packages[missing[0]]})")


def _rights(there: Link, allowed: str, command: tuple[str, ...], lacks: str, way: str = "") -> Rights:
    """Checks permissions. `allowed` is a shell test that succeeds if no sudo is needed. If the test fails, the user
    must be allowed to run the command with sudo.

    Raises InputError if neither is the case. The hint contains `way`, which says how the user can get the permission,
    and a line for sudoers.
    """
    words = " ".join(map(quoted, command))
    answer = there.run(
        f"{{ {allowed}; }} 2>/dev/null && echo directly && exit; sudo -n -l {words} >/dev/null 2>&1 && echo by sudo "
        f"&& exit; id -un; command -v {quoted(command[0])}"
    )
    lines = answer.output.decode("utf-8", "replace").splitlines()
    if lines[:1] == ["directly"]:
        return Rights()
    if lines[:1] == ["by sudo"]:
        return Rights("sudo -n ")
    user, path = lines if len(lines) == 2 else ("that user", command[0])
    rule = " ".join((path, *command[1:]))
    way = way or f"connect as the user `root` in {written('system.server')}, or allow the command with sudo"
    hint = f"{way}: {user} ALL=(root) NOPASSWD: {rule}"
    raise InputError(written(CONTROL), f"{user} at {there.address.text()} {lacks}", hint)


def _numbers(cpus: str) -> set[int]:
    """Parses a list of CPUs in the kernel's format: `0-3,8`."""
    numbers: set[int] = set()
    for part in filter(None, cpus.strip().split(",")):
        low, _, high = part.partition("-")
        numbers.update(range(int(low), int(high or low) + 1))
    return numbers


def _pinning(sudo: str, server: int, cpus: str) -> str:
    """Returns a shell script that pins the server to `cpus`. The script prints `done` and the CPUs to which the server
    was pinned before. The script waits for the end of its input and then undoes the change. At the end, it prints
    `undone` and the CPUs to which the server was pinned until then."""
    return f"""export LC_ALL=C; trap '' HUP INT TERM PIPE
held() {{ sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null; }}
threads() {{ for one in {server} $(grep -l "^PPid:[[:space:]]*{server}$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3)
  do ls "/proc/$one/task" 2>/dev/null; done; }}
hold() {{ said=$({sudo}taskset -c -p "$2" "$1" 2>&1) || [ ! -d "/proc/$1" ] || {{ failed=$said; return 1; }}; }}
undo() {{ hold {server} "$usual"; for thread in $(threads); do
  case " $before " in *" $thread="*) was=${{before#* $thread=}}; was=${{was%% *}};; *) was=$usual;; esac
  hold "$thread" "$was"; done; }}
failed=; before=" "; usual=$(held {server})
for thread in $(threads); do before="$before$thread=$(held "$thread") "; done
hold {server} {cpus} && for thread in $(threads); do hold "$thread" {cpus} || break; done
if [ -n "$failed" ] || [ -z "$usual" ]; then undo; echo "failed ${{failed:-the server is gone}}"; exit 1; fi
echo "done $usual"
while timeout -s KILL {SILENT_S} sh -c 'read -r beat' 2>/dev/null; do :; done
until=$(held {server}); undo; echo "undone $until"
"""
