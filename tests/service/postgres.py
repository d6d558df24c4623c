"""A real PostgreSQL, from Debian's package, which is installed where it is missing: started for the tests alone."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path


class Postgres:
    """A cluster in a folder, at a port of its own. It trusts this machine, and nobody else reaches it.

    Without flushing it is as quick as tests want it; kills of the server itself are tried with it.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="maxrr-postgres-"))
        self.durable = durable
        self.binaries = binaries()
        self.port = free_port()
        if os.getuid() == 0:  # which PostgreSQL refuses to be
            shutil.chown(self.folder, "postgres", "postgres")
        self.do(
            "initdb",
            "-D",
            self.folder / "data",
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C",
        )
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        flushing = "on" if self.durable else "off"
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} "
            f"-c fsync={flushing} -c synchronous_commit={flushing} -c full_page_writes={flushing}"
        )
        self.do("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w", "-o", options, "start")

    def stop(self) -> None:
        self.do("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def database(self, name: str) -> str:
        """Make an empty database, and return its URL."""
        self.do("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", name)
        return self.url.removesuffix("postgres") + name

    def do(self, program: str, *arguments: object) -> None:
        as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        command = [*as_user, str(self.binaries / program), *map(str, arguments)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")


def binaries() -> Path:
    """Where PostgreSQL is. Debian's package is installed where it is missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        subprocess.run(["apt-get", "install", "-y", "-qq", "postgresql"], check=True, stdout=subprocess.DEVNULL)
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_until(true, seconds: float = 30.0) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)
