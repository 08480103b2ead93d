"""Staging: files are written to a temporary folder, then renamed to their final location."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.files import Files, append_folder, replace_folder
from lakewright.lake.paths import join, parent
from lakewright.relations.relation import OutputMode
from lakewright.spark.engine import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


log = logging.getLogger(__name__)


class StagedFiles:
    """One write to `place`, which readers see only when it is published.

    The staging folder is next to it and starts with a dot, so that readers ignore it. A write that fails
    removes it; what an interrupted one leaves, the next one does. The caller makes sure that there is only
    one writer.
    """

    def __init__(self, files: Files, place: str, file_format: str, options: Mapping[str, str]) -> None:
        self.files = files
        self.place = place
        self.format = file_format
        self.options = options
        folder, name = parent(place)
        self.folder = join(folder, f".{name}.staged")

    def stage(self, frame: DataFrame, divided_by: Sequence[str], *, keeps_empty: bool) -> int:
        """Write the rows to the staging folder and return their number.

        With `keeps_empty`, a write without rows still leaves a file, which contains the columns.
        """
        with self._removed_on_failure():
            rows = self._write(frame, divided_by)
        if rows == 0 and not keeps_empty:
            for entry in list(self.files.listed(self.folder)):
                self.files.remove(join(self.folder, entry.name))
        return rows

    def _write(self, frame: DataFrame, divided_by: Sequence[str]) -> int:
        self._prepare()
        rows, count = counted(frame)
        writer = rows.write.format(self.format).options(**self.options)
        if divided_by:
            writer = writer.partitionBy(*divided_by)
        writer.save(f"file://{self.folder}" if self.folder.startswith("/") else self.folder)
        return count()

    @contextmanager
    def _removed_on_failure(self) -> Iterator[None]:
        """Remove the staging folder if the block fails: on a full disk, its files take space from others."""
        try:
            yield
        except BaseException:
            try:
                self.files.remove(self.folder)
            except Exception as error:  # it must not hide why the write failed; the next write removes it
                log.warning("%s is left of a write that failed: %s", self.folder, error)
            raise

    def put(self, mode: OutputMode, divided_by: Sequence[str]) -> None:
        """Publish the staged files: replace everything, replace their partitions, or add to them."""
        is_dynamic = mode is OutputMode.OVERWRITE_DYNAMIC
        if mode is OutputMode.OVERWRITE or (is_dynamic and not divided_by):
            replace_folder(self.files, self.folder, self.place)
            return
        for name in self._folders():
            staged, place = (join(base, name) if name else base for base in (self.folder, self.place))
            (replace_folder if is_dynamic else append_folder)(self.files, staged, place)
        self.files.remove(self.folder)
        self.files.make_folder(self.place)

    def empty(self) -> None:
        """Replace the place by an empty folder."""
        self._prepare()
        self.files.make_folder(self.folder)
        replace_folder(self.files, self.folder, self.place)

    def _folders(self) -> Iterator[str]:
        """Yield the folders with staged files, relative to the staging folder (empty text)."""
        yield from sorted({entry.name.rpartition("/")[0] for entry in self.files.listed(self.folder)})

    def _prepare(self) -> None:
        self.files.remove(self.folder)
        self.files.make_folder(parent(self.place)[0])


def check_single(label: str, place: str) -> None:
    """Raise an error if rows are to be written to a path that stands for any number of files.

    Raises:
        TargetError: It has a wildcard, of which a folder of that very name would be made.
    """
    if "*" in place or "?" in place:
        raise TargetError(
            f"{label}: rows cannot be written to {place}, whose `*` and `?` stand for many files",
            remedy="Write to a relation without them, such as one whose pattern is a folder.",
        )
