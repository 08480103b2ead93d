"""This process as a holder of leases, and whether another one has ended."""

from __future__ import annotations

import getpass
import os
import platform
import socket
import subprocess
from pathlib import Path

from lakewright.manifest.lease import Holder

__all__ = ["is_dead", "this_process", "user_name"]

PROC = Path("/proc")

UNKNOWN = ""


def this_process(run_id: str, *, user: str | None = None) -> Holder:
    """Return this process, for one of its runs, as a holder of leases."""
    pid = os.getpid()
    return Holder(
        host=socket.gethostname(),
        pid=pid,
        started=_started(pid) or UNKNOWN,
        run_id=run_id,
        user=user_name() if user is None else user,
    )


def is_dead(holder: Holder) -> bool:
    """Return whether a holder is a process of this host that has ended; of all others nothing is known.

    A process that has ended but not been waited for counts as ended. Where process ids may mean something
    else than they did to the holder (in another container, after a restart of the machine) the answer is no:
    its leases run out by themselves.
    """
    if holder.host != socket.gethostname() or holder.started == UNKNOWN:
        return False
    if _world(holder.started) != _world(_started(os.getpid()) or UNKNOWN):
        return False
    return _started(holder.pid) != holder.started


def _world(started: str) -> str:
    """The part of `started` within which process ids mean the same."""
    return started.rpartition(" ")[0]


def _started(pid: int) -> str | None:
    """Return where and when a process started, or None if there is no such process any more."""
    return _started_by_proc(pid) if (PROC / "self" / "stat").exists() else _started_by_ps(pid)


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = (PROC / "self/ns/pid").readlink().name
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field, the command's name in parentheses, may hold anything.
    fields = stat.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    return None if state in {"Z", "X"} else f"{boot} {namespace} {ticks}"


def _started_by_ps(pid: int) -> str | None:
    """Ask `ps`, which every Unix has; its answer is the same as long as the process lives."""
    command = ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
        ).stdout
    except OSError:
        return UNKNOWN
    state, _, started = answer.strip().partition(" ")
    is_gone = not started or state.startswith("Z")
    return None if is_gone else f"{platform.system()} {'-'.join(started.split())}"


def user_name() -> str:
    """Return the name of who runs this process, or its number where it has none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
