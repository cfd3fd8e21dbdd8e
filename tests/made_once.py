"""Makes empty data directories once per test run and copies them: `initdb` takes 0.6 s of CPU time, and about 300 tests
need a directory.

PostgreSQL's own tests do the same (src/test/perl/PostgreSQL/Test/Cluster.pm, `INITDB_TEMPLATE`). The server's program
is still used where a copy is not possible: on a test's own file system, where writes are counted or get lost, and with
programs that a test has put in place of the installed ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ironbench.host import programs

FOLDER = "IRONBENCH_TESTS_MADE_ONCE"
"""Environment variable with the directory of templates. Without it nothing is copied."""
_MEMORY = Path("/dev/shm")
_TARGETS = {"initdb": "-D", "mariadbd": "--datadir"}
Done = subprocess.CompletedProcess[str]


def begin() -> Path | None:
    """Creates the directory, unless a parent process has created it."""
    if FOLDER in os.environ:
        return None
    base = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="ironbench-made-once-", dir=base))
    folder.chmod(0o755)  # so that servers' users can read it
    os.environ[FOLDER] = str(folder)
    return folder


def replace() -> None:
    """Makes ironbench create data directories as copies, in this process and its forks."""
    if programs.run_program.__module__ == programs.__name__:
        programs.run_program = _copying(programs.run_program)


def _copying(run: Callable[..., Done]) -> Callable[..., Done]:
    def run_or_copy(words: Sequence[str], **how: Any) -> Done:
        if target := _target(words):
            return made(words, target, lambda other: run(other, **how), str(how.get("given", "")))
        return run(words, **how)

    return run_or_copy


def made(words: Sequence[str], target: Path, run: Callable[[Sequence[str]], Done], given: str = "") -> Done:
    """Fills the empty directory `target` as `run(words)` does, but with a copy of an earlier result if there is one."""
    log, owner = _log(words), target.stat()
    plain = [word for word in words if word not in ("--waldir", str(log))]
    kept = Path(os.environ[FOLDER]) / _key(plain, target, owner.st_uid, given)
    with Path(f"{kept}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            aside = kept.with_suffix(".new")
            aside.mkdir(mode=0o700)
            os.chown(aside, owner.st_uid, owner.st_gid)
            done = run([word.replace(str(target), str(aside)) for word in plain])
            if done.returncode:
                shutil.rmtree(aside)
                return done
            aside.rename(kept)
    subprocess.run(["cp", "-a", "--reflink=auto", f"{kept}/.", str(target)], check=True)
    if log is not None:
        _move_log(target, log)
    return Done(list(words), 0, "", "")


def _key(words: Sequence[str], target: Path, owner: int, given: str) -> str:
    """Returns the key of everything that determines the result: program, options, option file and input."""
    shaping = [str(owner), given]
    for word in words[_program(words) :]:
        if word.startswith("--defaults-file="):
            lines = Path(word.split("=", 1)[1]).read_text().splitlines()
            shaping += [line for line in lines if not line.startswith("tmpdir=")]
        else:
            shaping.append(word.replace(str(target), ""))
    return hashlib.sha256("\0".join(shaping).encode()).hexdigest()


def _program(words: Sequence[str]) -> int:
    """Returns the index of the server's program among the words, after the words that switch to its user; the number of
    words if absent."""
    return next((at for at, word in enumerate(words) if Path(word).name in _TARGETS), len(words))


def _target(words: Sequence[str]) -> Path | None:
    """Returns the directory that the command fills, if a copy may replace the command."""
    rest = words[_program(words) :]
    if FOLDER not in os.environ or not rest or not _installed(rest[0]):
        return None
    if (option := _TARGETS[Path(rest[0]).name]) == "--datadir":
        where = [word.split("=", 1)[1] for word in rest if word.startswith("--datadir=") and "--bootstrap" in rest]
    else:
        where = list(rest[rest.index(option) + 1 :][:1]) if option in rest else []
    ordinary = {place.stat().st_dev for place in (_MEMORY, Path(tempfile.gettempdir()))}
    return next((target for target in map(Path, where) if target.is_dir() and target.stat().st_dev in ordinary), None)


def _installed(program: str) -> bool:
    """Returns whether the program is the installed one and not a test's script."""
    with Path(shutil.which(program) or program).open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _log(words: Sequence[str]) -> Path | None:
    return Path(words[words.index("--waldir") + 1]) if "--waldir" in words else None


def _move_log(target: Path, log: Path) -> None:
    inside = target / "pg_wal"
    subprocess.run(["cp", "-a", f"{inside}/.", str(log)], check=True)
    owner = inside.stat()
    shutil.rmtree(inside)
    inside.symlink_to(log)
    os.chown(inside, owner.st_uid, owner.st_gid, follow_symlinks=False)
