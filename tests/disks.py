"""Small disks that tests fill."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """Make a folder a disk of its own, of one MiB."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, check=False) if shutil.which("mount") else None
    if done is None or done.returncode:
        pytest.skip("only who may mount a small disk can fill it")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full_but_for(folder: Path, pages: int) -> Iterator[None]:
    """Fill a folder's disk up to a few pages."""
    filler = folder / ".filler"
    with filler.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(PAGE))
        except OSError:
            stream.truncate(max(0, stream.tell() - pages * PAGE))
    try:
        yield
    finally:
        filler.unlink()
