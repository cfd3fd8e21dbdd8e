"""What runs inside the child process of a large load: `python -I -S inside.py PACKAGES`.

The load plan comes as one line on standard input, which then stays open: its end means that the parent is gone, or
wants no more, and the load ends. Lines of JSON go to standard output: `{"rows", "bytes"}` as the load goes on, and at
the end `{"loaded"}` or `{"failed"}`. Only the standard library, the core and an engine's own loader are loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from typing import Any

SAY_S = 0.1
ORPHANED = 3
"""Exit code when nobody listens any more."""
_PATIENCE_S = 30.0


def main(packages: str) -> None:
    sys.path.insert(0, packages)
    line = sys.stdin.buffer.readline()
    import ironbench._core as core
    from ironbench.errors import IronbenchError

    progress = core.LoadProgress()
    threading.Thread(target=_listen, args=(progress,), daemon=True).start()
    threading.Thread(target=_tell, args=(progress,), daemon=True).start()
    try:
        say({"loaded": loaded(json.loads(line), line, progress)})
    except IronbenchError as error:
        say({"failed": (type(error).__name__, error.subject, error.cause, error.hint)})
    sys.stderr.flush()
    os._exit(0)  # a third of a gigabyte of text need not be given back piece by piece


def loaded(plan: dict[str, Any], line: bytes, progress: Any) -> dict[str, Any]:
    import ironbench._core as core

    loader = plan["engine"].get("loader")
    if loader is None:
        return dict(json.loads(core.load_rows(line, progress)))
    sys.path.append(loader["packages"])
    return dict(importlib.import_module(loader["module"]).load(plan, progress))


def say(message: dict[str, Any]) -> None:
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except OSError:
        os._exit(ORPHANED)


def _tell(progress: Any) -> None:
    while True:
        time.sleep(SAY_S)
        say({"rows": progress.rows, "bytes": progress.bytes})


def _listen(progress: Any) -> None:
    """Ends the load in good order, and the process when that takes long."""
    while os.read(0, 1):
        pass
    progress.stop()
    time.sleep(_PATIENCE_S)
    os._exit(ORPHANED)


if __name__ == "__main__":
    main(*sys.argv[1:])
