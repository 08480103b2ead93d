"""A lock of the operating system around commits to a table on a local file system.

There a commit is a rename, and two processes can both believe that theirs made a version. The lock is a file
beside the table's folder (inside it, the folder would look like a table), and the kernel lets it go when its
holder dies.

Source: Delta's documentation, "Storage configuration" (a local file system has no mutual exclusion).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lakewright.errors import LeaseHeld
from lakewright.lake.files import local_path
from lakewright.spec.models.places import Address

__all__ = ["guarded", "lock_file"]

PATIENCE = 30.0
"""Seconds to wait for another process's commit."""

PAUSE = 0.05


def lock_file(location: Path) -> Path:
    """Return the file that guards the table at a location.

    Example:
        >>> lock_file(Path("/lake/silver/regions")).as_posix()
        '/lake/silver/.regions.lock'
    """
    return location.with_name(f".{location.name}.lock")


@contextmanager
def guarded(
    address: Address,
    holder: str,
    *,
    patience: float = PATIENCE,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the lock of a local table meanwhile; other file systems and catalogs guard commits themselves.

    Args:
        address: The table.
        holder: Who holds it, for others to read.
        patience: Seconds to wait.
        sleep: Waits; tests give another one.

    Raises:
        LeaseHeld: Another process kept it all that time.
    """
    path = None if address.location is None else local_path(address.location)
    if path is None:
        yield
        return
    file = lock_file(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _lock(descriptor, address, patience, sleep)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, holder.encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, address: Address, patience: float, sleep: Callable[[float], None]) -> None:
    waited = 0.0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waited >= patience:
                raise _held(address, os.pread(descriptor, 1000, 0).decode(errors="replace")) from None
            sleep(PAUSE)
            waited += PAUSE
        else:
            return


def _held(address: Address, holder: str) -> LeaseHeld:
    who = holder or "another process"
    return LeaseHeld(
        f"{who} is committing to {address}",
        remedy="Wait for that process to end, then run again.",
        details={"key": str(address), "holder": who},
    )
