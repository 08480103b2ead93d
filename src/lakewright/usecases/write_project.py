"""Write a project shipped with the package into a folder, without overwriting anything."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lakewright.errors import UsageError
from lakewright.lake.files import LocalFiles

__all__ = ["packaged", "write_project"]

MARKER = "project.yml"


def packaged(*path: str) -> Traversable:
    """Return a folder of the installed package."""
    return files("lakewright").joinpath(*path)


def write_project(source: Traversable, folder: Path) -> int:
    """Write a packaged project into a folder and return the number of files, 0 if it already exists.

    `project.yml` is written last and marks the project as complete: if it exists, nothing is written,
    even if files were changed or removed since. Files missing after an interrupted call are added.

    Raises:
        UsageError: The folder contains something else.
    """
    marker = folder / MARKER
    if marker.exists():
        if _name(marker.read_bytes()) == _name(source.joinpath(MARKER).read_bytes()):
            return 0
        raise _refusal(folder, f"has another project: {marker}")
    contents = dict(_contents(source))
    _check_free(folder, contents)
    order = sorted(contents, key=lambda path: path == MARKER)
    for path in order:
        LocalFiles().write(str(folder / path), contents[path])
    return len(order)


def _contents(source: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in source.iterdir():
        if entry.is_dir():
            yield from _contents(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_bytes()


def _check_free(folder: Path, contents: dict[str, bytes]) -> None:
    if folder.exists() and not folder.is_dir():
        raise _refusal(folder, "is not a folder")
    for path in folder.rglob("*"):
        # Files of an interrupted call are complete, because files are renamed into place.
        if path.is_file() and contents.get(path.relative_to(folder).as_posix()) != path.read_bytes():
            raise _refusal(folder, f"is not empty: {path.name}")


def _refusal(folder: Path, why: str) -> UsageError:
    return UsageError(
        f"{folder} {why}; nothing was written", remedy="Name a folder that is empty or does not exist."
    )


def _name(project: bytes) -> bytes:
    lines = (line for line in project.splitlines() if line.startswith(b"name:"))
    return next(lines, b"").strip()
