"""Putting a project that comes with the tool into a folder, without ever touching what is somebody's own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lakewright.errors import UsageError

__all__ = ["packaged", "write_project"]

MARKER = "project.yml"


def packaged(*path: str) -> Traversable:
    """Return a folder that the package brings."""
    return files("lakewright").joinpath(*path)


def write_project(source: Traversable, folder: Path) -> int:
    """Write a packaged project into a folder; return how many files that took, 0 where it is there already.

    `project.yml` comes last and tells that the rest is complete: where it is, nothing is written, whatever
    was changed or removed since. A folder that a cut short call left behind is completed.

    Raises:
        UsageError: The folder holds something else.
    """
    marker = folder / MARKER
    if marker.exists():
        if _name(marker.read_bytes()) == _name(source.joinpath(MARKER).read_bytes()):
            return 0
        raise _refusal(folder, f"holds another project: {marker}")
    contents = dict(_contents(source))
    _check_free(folder, contents)
    order = sorted(contents, key=lambda path: path == MARKER)
    for path in order:
        _write(folder / path, contents[path])
    return len(order)


def _contents(source: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in source.iterdir():
        if entry.is_dir():
            yield from _contents(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_bytes()


def _check_free(folder: Path, contents: dict[str, bytes]) -> None:
    if folder.exists() and not folder.is_dir():
        raise _refusal(folder, "is no folder")
    for path in folder.rglob("*"):
        # What a cut short call wrote is whole, because files are renamed into their places.
        if path.is_file() and contents.get(path.relative_to(folder).as_posix()) != path.read_bytes():
            raise _refusal(folder, f"isn't empty: {path.name}")


def _refusal(folder: Path, why: str) -> UsageError:
    return UsageError(
        f"{folder} {why}; nothing was written", remedy="Name a folder that is empty or doesn't exist."
    )


def _name(project: bytes) -> bytes:
    lines = (line for line in project.splitlines() if line.startswith(b"name:"))
    return next(lines, b"").strip()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".lakewright-")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o644)
    Path(name).replace(path)
