"""An ssh server on a loopback port with its own host key, user keys and configuration. Only the program sshd is taken
from the machine."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

PROGRAM = shutil.which("sshd") or ("/usr/sbin/sshd" if Path("/usr/sbin/sshd").exists() else "")
LACKING = "" if PROGRAM and shutil.which("ssh-keygen") else "no ssh server: apt-get install openssh-server gets one"


class SshServer:
    """Accepts the user who runs the tests, by the key in `home`. Use as a context manager."""

    def __init__(self, port: int, strangers: bool = False) -> None:
        """`strangers`: other users of this machine are also accepted, including those without a password."""
        self.directory = Path(tempfile.mkdtemp(prefix="ironbench-ssh-", dir="/tmp"))
        self.port, self.strangers = port, strangers
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.home = self.directory / "home"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> SshServer:
        try:
            (self.home / ".ssh").mkdir(parents=True, mode=0o700)
            self.key("host", self.directory / "host")
            self.key("user", self.home / ".ssh" / "id_ed25519")
            shutil.copy(self.home / ".ssh" / "id_ed25519.pub", self.directory / "authorized")
            self.known(self.directory / "host.pub")
            if self.strangers:
                self.directory.chmod(0o711)
                (self.directory / "authorized").chmod(0o644)
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def address(self) -> str:
        return f"ssh://{self.user}@127.0.0.1:{self.port}"

    def stranger(self) -> str:
        """Returns a user of this machine who is not root and may log in; empty if there is none."""
        shells = Path("/etc/shells").read_text().split()
        others = [one for one in pwd.getpwall() if one.pw_uid not in (0, os.getuid()) and one.pw_shell in shells]
        for other in others:
            if Path(other.pw_dir).is_dir():
                return other.pw_name
        return ""

    def key(self, comment: str, file: Path, passphrase: str = "") -> None:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", comment, "-f", str(file)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def known(self, key: Path, home: Path | None = None) -> None:
        """Makes the host known to `home` by that key."""
        words = key.read_text().split()
        file = (home or self.home) / ".ssh" / "known_hosts"
        file.write_text(f"[127.0.0.1]:{self.port} {words[0]} {words[1]}\n")

    def start(self) -> None:
        options = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.directory / "host",
            "AuthorizedKeysFile": self.directory / "authorized",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "yes" if self.strangers else "no",  # otherwise sshd(8) rejects users whose password is locked
            "PasswordAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
        }
        config = self.directory / "config"
        config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd(8) does not start without it
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen([PROGRAM, "-D", "-e", "-f", str(config)], stdout=log, stderr=log)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError((self.directory / "log").read_text())

    def sessions(self) -> list[int]:
        """Returns the pids of its children, one for each connection."""
        assert self.process is not None
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [int(word) for word in listed.stdout.split()]

    def stop(self) -> None:
        if self.process is None:
            return
        for pid in self.sessions():
            subprocess.run(["kill", str(pid)], check=False)
        self.process.terminate()
        self.process.wait(10)
        self.process = None
