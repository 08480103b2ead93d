"""Strikes at the processes of a server while a run works in it: any of them is killed at a moment."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.acceptance.command import Lakewright
from tests.chaos.lake import CANARY, ENTITIES

VICTIMS = ("server", "worker host", "session host", "jvm", "worker", "client")
"""What may be killed: each process that takes part in a request."""

PATIENCE = 120.0
"""Seconds in which what a server has started ends."""

LONGEST = 300.0
"""Seconds in which a server that was started again processes what waits."""

TRIGGERS = (
    f"triggers: {{arrivals: {{entities: [{', '.join(ENTITIES)}], on: arrival, settle: 0s, every: 1s}}}}\n"
)
"""Lets a server process slices by itself."""


@contextmanager
def arrivals(folder: Path) -> Iterator[None]:
    """Let servers of the lake process what arrives, in the `with` block."""
    declared = folder / "model" / "triggers.yml"
    declared.write_text(TRIGGERS)
    try:
        yield
    finally:
        declared.unlink()


def wait_until_all_is_processed(folder: Path) -> None:
    """Wait until the lake's slices are processed by its server; one that failed waits for an operator."""
    wanted = len(list((folder / "lake" / "bronze").glob("*/*.parquet")))
    deadline = time.monotonic() + LONGEST
    while True:
        told = Lakewright(folder).run("manifest", "stats", "-o", "json", CHAOS_PASSWORD=CANARY)
        counts = json.loads(told.out).values() if told.code == 0 else ()
        if sum(each.get("processed", 0) + each.get("failed", 0) for each in counts) >= wanted:
            return
        assert time.monotonic() < deadline, f"slices wait for a server that was started again: {told.all}"
        time.sleep(1)


@dataclass(frozen=True)
class Server:
    """A server of a lake."""

    folder: Path
    pid: int

    @classmethod
    def start(cls, folder: Path) -> Server:
        """Return a server that takes requests, without a port; without triggers it has no work of its own."""
        command = Lakewright(folder)
        done = command.run("serve", "--detach", "--on-demand", CHAOS_PASSWORD=CANARY)
        assert done.code == 0, done.all
        state = json.loads((folder / ".lakewright" / "serve.json").read_text())
        return cls(folder, state["pid"])

    def kill(self, victim: str, client: int) -> bool:
        """Kill one of its processes, and return whether there was one."""
        found = client if victim == "client" else self._family().get(victim)
        if found is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(found, signal.SIGKILL)
        return True

    def _family(self) -> dict[str, int]:
        found = {"server": self.pid}
        with suppress(psutil.Error):
            for host in psutil.Process(self.pid).children():
                found["worker host"] = host.pid
                for child in host.children():
                    java = [each for each in child.children() if each.name() == "java"]
                    found["session host" if java else "worker"] = child.pid
                    if java:
                        found["jvm"] = java[0].pid
        return found

    def processes(self) -> list[psutil.Process]:
        """Return all its processes, which may outlive it."""
        with suppress(psutil.Error):
            own = psutil.Process(self.pid)
            return [own, *own.children(recursive=True)]
        return []

    def end(self, processes: list[psutil.Process]) -> None:
        """Stop it, and wait until what it has started has ended by itself."""
        Lakewright(self.folder).run("serve", "stop")
        _, alive = psutil.wait_procs(processes, PATIENCE)
        assert not alive, f"these outlive the server: {[each.cmdline() for each in alive]}"


def victim_of(count: int) -> str:
    """Return which process a strike's number means."""
    return VICTIMS[count % len(VICTIMS)]
