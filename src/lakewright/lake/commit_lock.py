"""A lock around commits to a table on a local file system, between processes of one machine.

Delta commits to a local table by renaming a file, and two processes can both believe that they created a
version. The lock is a file next to the table's folder: inside it, the folder would look like a table. It is
an advisory lock of the operating system (`flock`), which the kernel releases when its holder dies. Its holder
removes the file: one that waits for a file that is gone tries again with the next one.

Source: Delta's documentation, "Storage configuration" (a local file system provides no mutual exclusion).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakewright.errors import LeaseHeld
from lakewright.lake.paths import local_path
from lakewright.lake.storage_errors import accessing
from lakewright.spec.models.places import Address

PATIENCE = 600.0
"""Seconds to wait for another process, which may compact a table of many millions of rows."""

PAUSE = 0.05
"""Seconds between two attempts to take the lock."""


def lock_file(location: Path) -> Path:
    """Return the file that is locked for commits to the table at a location.

    Example:
        >>> lock_file(Path("/lake/silver/regions")).as_posix()
        '/lake/silver/.regions.lock'
    """
    return location.with_name(f".{location.name}.lock")


@contextmanager
def commit_lock(address: Address, holder: str, *, patience: float | None = None) -> Iterator[None]:
    """Hold the lock of a local table; other file systems and catalogs need none.

    Args:
        address: The table.
        holder: The name of this holder, written into the file for others to read.
        patience: Seconds to wait for another holder; if it is not given, `PATIENCE` for another process.
            Workers of one process have one name, and wait for each other until the commit is made.

    Raises:
        LeaseHeld: Another process held the lock for all of `patience`.
        StorageUnavailable: The disk is full or read-only, or this user may not write there.
    """
    path = None if address.location is None else local_path(address.location)
    if path is None:
        yield
        return
    from filelock import FileLock, Timeout

    file = lock_file(path)
    # A file system without flock is an error: a soft lock would outlive its holder's death.
    lock = FileLock(file, fallback_to_soft=False)
    with accessing(f"the lock {file} can't be written"):
        file.parent.mkdir(parents=True, exist_ok=True)
        while not lock.is_locked:
            try:
                lock.acquire(timeout=PATIENCE if patience is None else patience, poll_interval=PAUSE)
            except Timeout:
                other = _read(file)
                if patience is not None or other != holder:
                    raise _held(address, other) from None
    try:
        with accessing(f"the lock {file} can't be written"):
            file.write_text(holder, "utf-8")
        yield
    finally:
        with suppress(OSError):  # a file that stays does no harm
            file.unlink()
        lock.release()


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace")
    except FileNotFoundError:  # its holder has just ended
        return ""


def _held(address: Address, holder: str) -> LeaseHeld:
    who = holder or "another process"
    return LeaseHeld(
        f"{who} is committing to {address.shown}",
        remedy="Wait for that process to end, then run again.",
        details={"key": str(address), "holder": who},
    )
