"""This process as a holder of leases, and whether another holder has ended."""

from __future__ import annotations

import getpass
import os
import platform
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.manifest.lease import Holder

if TYPE_CHECKING:
    import psutil


PROC = Path("/proc")

UNKNOWN = ""


def this_process(run_id: str) -> Holder:
    """Return this process, for one of its runs, as a holder of leases."""
    pid = os.getpid()
    return Holder(
        host=socket.gethostname(),
        pid=pid,
        started=_started(pid) or UNKNOWN,
        run_id=run_id,
        user=user_name(),
    )


def is_dead(holder: Holder) -> bool:
    """Return whether a holder is a process of this host that has ended; False if that is unknown.

    A process that has ended but that its parent has not waited for counts as ended. The answer is False for a
    holder on another host, in another container or before a restart of the machine: process ids have another
    meaning there, and its leases expire without help.
    """
    if holder.host != socket.gethostname() or holder.started == UNKNOWN:
        return False
    if _scope(holder.started) != _scope(_started(os.getpid()) or UNKNOWN):
        return False
    started = _started(holder.pid)
    return started is None or started not in (UNKNOWN, holder.started)


def _scope(started: str) -> str:
    """Return the part of `started` that names the scope in which process ids are unique."""
    return started.rpartition(" ")[0]


def _started(pid: int) -> str | None:
    """Return the scope and start of a process; None if there is none, `UNKNOWN` if it cannot be read."""
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        if (PROC / "self" / "ns" / "pid").exists():
            return f"{_linux_scope()} {_ticks(process)}"
        return f"{platform.system()} created {process.create_time():.6f}"
    except psutil.NoSuchProcess:
        return None
    except (psutil.Error, OSError):
        return UNKNOWN


def _linux_scope() -> str:
    """Return the ids of this boot and of this namespace of processes: a container has its own."""
    boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    namespace = (PROC / "self/ns/pid").readlink().name
    return f"{boot} {namespace}"


def _ticks(process: psutil.Process) -> int:
    """Return the clock ticks from boot to a process's start, which a change of the clock does not alter.

    psutil adds the boot time, which does change with the clock, so it is subtracted again; if it changes in
    between, both are read again.
    """
    import psutil

    while True:
        boot = psutil.boot_time()
        created = psutil.Process(process.pid).create_time()
        if psutil.boot_time() == boot:
            return round((created - boot) * os.sysconf("SC_CLK_TCK"))


def user_name() -> str:
    """Return the name of this process's user, or its number if it has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
