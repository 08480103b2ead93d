"""Strikes at the processes of a server while a run works in it: any of them is killed at a moment."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.acceptance.command import Lakewright
from tests.chaos.lake import CANARY

__all__ = ["VICTIMS", "Server", "victim_of"]

VICTIMS = ("server", "worker host", "session host", "jvm", "worker", "client")
"""What may be killed: each process that takes part in a request."""

PATIENCE = 120.0


@dataclass(frozen=True)
class Server:
    """A server of a lake, without a port and without work of its own."""

    folder: Path
    pid: int

    @classmethod
    def start(cls, folder: Path) -> Server:
        """Return a server that takes requests."""
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
