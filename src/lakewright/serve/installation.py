"""The installed code, as it was when a process started: a changed one needs a new process."""

from __future__ import annotations

import os
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CODE", "Installation"]

CODE = (Path(__file__).parents[1], Path(sysconfig.get_paths()["purelib"]))
"""The folders with the code of this installation: Lakewright's, and that of all packages."""

PAUSE = 1.0
"""Seconds between two looks at the files."""


@dataclass(slots=True)
class Installation:
    """The time of the newest file of the first folder, and of the last change of the others."""

    folders: Sequence[Path]
    newest: int
    clock: Callable[[], float] = time.monotonic
    looked: float = float("-inf")

    @classmethod
    def of(cls, folders: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> Installation:
        """Return the installation as it is now; call it before most modules are imported."""
        return cls(folders, _newest(folders), clock)

    def has_changed(self) -> bool:
        """Return whether code was changed, installed or removed; files are looked at once a second."""
        now = self.clock()
        if now - self.looked < PAUSE:
            return False
        self.looked = now
        return _newest(self.folders) != self.newest


def _newest(folders: Sequence[Path]) -> int:
    # Installing anything changes the folder of installed packages itself.
    return max([*(folder.stat().st_mtime_ns for folder in folders), *_times(str(folders[0]))])


def _times(folder: str) -> Iterator[int]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _times(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.stat().st_mtime_ns
