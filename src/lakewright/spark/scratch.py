"""The folder for temporary files of this process's JVM: native libraries, scratch of Hive and Spark."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["remove_leftovers", "scratch_folder"]

PREFIX = "lakewright-run-"
_NAME = re.compile(rf"{PREFIX}(?P<process>\d+)-.*")
OLD = 24 * 3600
"""Seconds after which the folder of a process that doesn't run is removed. Another container may share the
temporary folder of this machine, but not its numbers of processes."""


@cache
def scratch_folder() -> Path:
    """Return the folder, which is made on first use and removed when the process ends."""
    remove_leftovers(Path(tempfile.gettempdir()), time.time())
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_leftovers(place: Path, now: float) -> None:
    """Remove the scratch folders of processes that ended without removing them."""
    for folder in _leftovers(place, now):
        shutil.rmtree(folder, ignore_errors=True)


def _leftovers(place: Path, now: float) -> Iterator[Path]:
    for folder in place.glob(f"{PREFIX}*"):
        found = _NAME.fullmatch(folder.name)
        try:
            is_old = folder.is_dir() and now - folder.stat().st_mtime > OLD
        except OSError:
            continue
        if found and is_old and not _runs(int(found["process"])):
            yield folder


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True
