"""What is read together: the files of a slice, or of a relation, with the place that their names are from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.errors import LakewrightError, SliceError
from lakewright.lake.paths import join, local_path

__all__ = ["Source", "SourceFile"]

_RAW = "org.apache.hadoop.fs.RawLocalFileSystem"

_ALL_VISIBLE = "[^_.]*"
"""Names of files that are read. Spark also takes those that start with `_` if they have a `=`."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: its path below the source's place, or its own name if the source is a file; its bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one format that are read together.

    Attributes:
        label: What messages call it, such as `the slice day1`.
        place: A local path or a URI: that of the folder, or of the only file.
        files: All its files that are not hidden.
        kind: Their format.
        is_folder: Whether the place is a folder.
        is_whole: Whether `files` are all files in the folder.
        details: What errors about it have as their details.
    """

    label: str
    place: str
    files: tuple[SourceFile, ...]
    kind: str
    is_folder: bool = True
    is_whole: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)

    def path(self, file: SourceFile) -> str:
        """Return the path or URI of one of its files."""
        return join(self.place, file.name) if self.is_folder else self.place

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths or URIs of its files."""
        return tuple(map(self.path, self.files))

    @property
    def is_local(self) -> bool:
        """Whether its files are on this machine."""
        return local_path(self.place) is not None

    @property
    def places(self) -> list[str]:
        """What Spark reads to read exactly these files: the folder if they are all of it, or the files."""
        return [self.place] if self.is_whole else list(self.paths)

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader for `places`: all files at any depth, and no columns from folders."""
        # A name with `*` or `[` is not a pattern.
        options = {
            "__globPaths__": "false",
            "recursiveFileLookup": "true",
            "pathGlobFilter": _ALL_VISIBLE,
        }
        if self.is_local and any(":" in each for each in (self.place, *(file.name for file in self.files))):
            # Hadoop's file system with checksums cannot open local files with a colon in their name.
            options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
        return options

    def only(self, files: Iterable[SourceFile]) -> Source:
        """Return the source with some of its files."""
        kept = tuple(files)
        return self if len(kept) == len(self.files) else replace(self, files=kept, is_whole=False)

    def check_names(self) -> None:
        """Raise the source's error if a file's name is not text: Spark would not find it."""
        for path in self.paths:
            try:
                path.encode()
            except UnicodeEncodeError:
                shown = path.encode(errors="backslashreplace").decode()
                raise self.error(
                    f"the name of {shown} is not UTF-8", "Rename it, then resolve the item."
                ) from None

    def error(self, why: str, remedy: str, **details: Any) -> LakewrightError:
        """Return the error for files that can't be read."""
        return SliceError(
            f"{self.label} can't be read: {why}", remedy=remedy, details={**self.details, **details}
        )
