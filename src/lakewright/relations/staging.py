"""Files written beside their place and then put there by renaming."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lakewright.lake.files import Files, append_folder, join, parent, replace_folder
from lakewright.relations.relation import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["StagedFiles"]


class StagedFiles:
    """One write to `place`, which readers see when it is put there and not before.

    Beside it is a folder whose name starts with a dot, which readers pass over. What a write that was
    interrupted left there is removed by the next; one writer at a time is the caller's to see to.
    """

    def __init__(self, files: Files, place: str, file_format: str, options: Mapping[str, str]) -> None:
        self.files = files
        self.place = place
        self.format = file_format
        self.options = options
        folder, name = parent(place)
        self.folder = join(folder, f".{name}.staged")

    def stage(self, frame: DataFrame, divided_by: Sequence[str], *, keeps_empty: bool) -> int:
        """Write the rows beside the place, and return how many there were.

        With `keeps_empty` a write of no rows leaves a file all the same, which holds the columns.
        """
        from pyspark.sql import Observation, functions

        observation = Observation()
        self._prepare()
        writer = frame.observe(observation, functions.count(functions.lit(1)).alias("rows")).write
        writer = writer.format(self.format).options(**self.options)
        if divided_by:
            writer = writer.partitionBy(*divided_by)
        writer.save(f"file://{self.folder}" if self.folder.startswith("/") else self.folder)
        rows = int(observation.get["rows"])
        if rows == 0 and not keeps_empty:
            for entry in list(self.files.listed(self.folder)):
                self.files.remove(join(self.folder, entry.name))
        return rows

    def put(self, mode: OutputMode, divided_by: Sequence[str]) -> None:
        """Put what was staged in place of all, or of the partitions met, or next to what is there."""
        if mode is OutputMode.OVERWRITE or (mode is OutputMode.OVERWRITE_DYNAMIC and not divided_by):
            self.replace()
        elif mode is OutputMode.OVERWRITE_DYNAMIC:
            self.replace_folders()
        else:
            self.append()

    def empty(self) -> None:
        """Put an empty folder in the place."""
        self._prepare()
        self.files.make_folder(self.folder)
        self.replace()

    def replace(self) -> None:
        """Put what was staged in the place; nothing of the former content stays."""
        replace_folder(self.files, self.folder, self.place)

    def replace_folders(self) -> None:
        """Put each staged folder of a partition in its place; others stay."""
        for name in self._folders():
            replace_folder(self.files, join(self.folder, name), join(self.place, name))
        self._finish()

    def append(self) -> None:
        """Put what was staged next to what is there, folder by folder."""
        for name in self._folders():
            staged, place = (join(base, name) if name else base for base in (self.folder, self.place))
            append_folder(self.files, staged, place)
        self._finish()

    def _folders(self) -> Iterator[str]:
        """Yield the folders that hold staged files, below the staging folder; empty text for itself."""
        yield from sorted({entry.name.rpartition("/")[0] for entry in self.files.listed(self.folder)})

    def _prepare(self) -> None:
        self.files.remove(self.folder)
        self.files.make_folder(parent(self.place)[0])

    def _finish(self) -> None:
        self.files.remove(self.folder)
        self.files.make_folder(self.place)
