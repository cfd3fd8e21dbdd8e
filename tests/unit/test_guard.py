"""How long a guard waits for a server that was told to end."""

import subprocess
import sys
from pathlib import Path

from ironbench.engines import guard

SERVER = """
import signal, sys, time
def retry(*_):
    print("could not write: No space left on device", flush=True)
signal.signal(signal.SIGINT, retry)
print("ready", flush=True)
while True:
    time.sleep(1)
"""


def test_a_last_checkpoint_that_finds_no_room_is_not_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("No space left on device: of yesterday\n")
    with log.open("ab") as file:
        server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=file, stderr=file)
    while "ready" not in log.read_text():
        pass
    try:
        guard._end(server, 3600.0, log)
        assert server.returncode == -3  # SIGQUIT: the server recovers when it is started again
    finally:
        server.kill()
        server.wait()
