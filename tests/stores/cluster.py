"""A PostgreSQL server of the tests' own, on loopback, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg

USER = "postgres"


@dataclass(frozen=True)
class Cluster:
    """A server; as root it belongs to the user `postgres`, because PostgreSQL refuses to run as root."""

    programs: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run(
            "pg_ctl",
            "start",
            "-w",
            "-D",
            str(self.folder / "data"),
            "-l",
            str(self.folder / "log"),
            "-o",
            options,
        )

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self.folder / "data"))

    def make(self) -> None:
        self._run(
            "initdb", "--no-sync", "-U", USER, "-A", "trust", "-E", "UTF8", "-D", str(self.folder / "data")
        )

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            check=False,
            capture_output=program != "pg_ctl",
            stdin=subprocess.DEVNULL,
            stdout=None if program != "pg_ctl" else subprocess.DEVNULL,
            cwd=self.folder,
            user=USER if os.geteuid() == 0 else None,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr!r}")


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, the newest that is installed, or None."""
    on_path = shutil.which("initdb")
    places: Sequence[Path] = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    found = [Path(on_path)] if on_path else list(places)
    return found[0].parent if found else None


@contextmanager
def running_cluster(folder_of_programs: Path) -> Iterator[Cluster]:
    """Yield a server that is running, and remove it afterwards."""
    # Not pytest's own folder: another user couldn't get into it.
    folder = Path(tempfile.mkdtemp(prefix="lakewright-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        cluster = Cluster(folder_of_programs, folder, free_port())
        cluster.make()
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def empty_schema(server: str) -> Iterator[str]:
    """Yield the URL of a schema of its own on a server, and remove it afterwards."""
    schema = f"lakewright_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        yield f"{server}?options=-csearch_path%3D{schema}"
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
