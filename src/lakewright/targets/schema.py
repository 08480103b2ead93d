"""The `schema` target: a schema in a file, for others to read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.files import part_of
from lakewright.lake.paths import local_path
from lakewright.plan.outcome import Outcome
from lakewright.plan.resource import Resource
from lakewright.schemas.avro import as_avro
from lakewright.schemas.schema import Schema
from lakewright.schemas.spark import as_spark_json
from lakewright.spec.models.base import KindOf, Reference, from_text
from lakewright.targets.context import Context
from lakewright.targets.file_output import FileOutput

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["SchemaTarget"]


class SchemaTarget(FileOutput):
    """Writes a schema to a file, as Avro or in Spark's JSON form."""

    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] = Declared(
        alias="schema", description="The schema to write."
    )
    file: str = Declared(description="Path of the file, relative to the project's folder.")
    format: Annotated[Literal["avro", "spark"], from_text(str.lower)] = Declared(
        default="avro", description="`avro`, or `spark` for Spark's JSON form."
    )

    def references(self) -> Iterable[Reference]:
        """Return what the schema refers to."""
        return self.declared_schema.references_below("schema")

    def place(self, workspace: Workspace) -> str:
        """Return the path of the file.

        Raises:
            SpecError: It isn't on this machine.
        """
        place = workspace.resolve_location(self.file)
        if local_path(place) is None:
            raise SpecError.of(f"{self.label}: {place} is not a file of this machine")
        return str(local_path(place))

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what the mappings of the schema read."""
        return frozenset().union(*(workspace.required(name) for name in self.declared_schema.mappings()))

    def write(self, context: Context, place: str) -> Outcome:
        """Write the schema."""
        fields = self.declared_schema.fields(context.workspace)
        document = as_spark_json(fields) if self.format == "spark" else as_avro(fields, self.name)
        part = Path(part_of(place))
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        part.replace(place)
        return Outcome(metrics={"columns": len(fields)})
