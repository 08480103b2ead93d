"""The `local` target: rows in one CSV file of the machine that runs the job."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.columns import column
from lakewright.lake.files import part_of
from lakewright.lake.paths import local_path
from lakewright.mappings.mapping import Input
from lakewright.plan.outcome import Outcome
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Reference, Texts, from_text
from lakewright.targets.context import Context
from lakewright.targets.file_output import FileOutput
from lakewright.targets.writing import observed_measures

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["LocalTarget"]


class LocalTarget(FileOutput):
    """Writes the rows of a mapping to one CSV file of the machine that runs the job."""

    mapping: Input = Declared(description="Mapping whose rows to write.")
    filename: str = Declared(description="Path of the file, relative to the project's folder.")
    format: Annotated[Literal["csv"], from_text(str.lower)] = Declared(
        default="csv", description="Format of the file."
    )
    columns: Texts = Declared(default=(), description="Columns to write; default: all.")
    encoding: str = Declared(default="UTF-8", description="Encoding of the file.")
    header: bool = Declared(default=True, description="Write the names of the columns first.")
    newline: str = Declared(default="\n", description="End of each line.")
    delimiter: str = Declared(default=",", pattern="^.$", description="Between two values.")
    quote: str = Declared(default='"', pattern="^.$", description="Around values with separators.")
    escape: str = Declared(default="\\", pattern="^.$", description="Before a quote within a value.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

    def place(self, workspace: Workspace) -> str:
        """Return the path of the file.

        Raises:
            SpecError: It isn't on this machine.
        """
        place = workspace.resolve_location(self.filename)
        if local_path(place) is None:
            raise SpecError.of(
                f"{self.label}: {place} is not a file of this machine", remedy="Use kind: file."
            )
        return str(local_path(place))

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)

    def write(self, context: Context, place: str) -> Outcome:
        """Write the rows, one after the other."""
        frame = context.workspace.frame(self.mapping)
        names = list(self.columns) or frame.columns
        texts = frame.select(*(column(name).cast("string").alias(name) for name in names))
        part = Path(part_of(place))
        part.parent.mkdir(parents=True, exist_ok=True)
        # Spark measures the rows of a query once it has ended, and this one is read step by step.
        is_observed = bool(context.workspace.observations)
        if is_observed:
            texts = texts.persist()
            texts.count()
        count = 0
        with part.open("w", encoding=self.encoding, newline="") as file:
            writer = csv.writer(
                file,
                delimiter=self.delimiter,
                quotechar=self.quote,
                escapechar=self.escape,
                doublequote=False,
                lineterminator=self.newline,
            )
            if self.header:
                writer.writerow(names)
            for row in texts.toLocalIterator():
                writer.writerow(row)
                count += 1
        if is_observed:
            texts.unpersist()
        context.workspace.lake.check_commit()
        part.replace(place)
        measures = observed_measures(context.workspace, self.mapping)
        return Outcome(metrics={"target_records": count, **measures})
