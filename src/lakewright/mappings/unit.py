"""The `unit` mapping: mappings of its own, which only it sees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.mappings.mapping import Mapping
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import KindOf, NamedMap, Reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


MAIN = "main"


class UnitMapping(Mapping):
    """Returns the mapping `main` of its own mappings; `name:other` is another one of them.

    Names in them mean the unit's own mappings first, then those of the project.
    """

    mappings: NamedMap[Annotated[Mapping, KindOf("mapping")]] = Declared(
        description="The unit's own mappings; one is usually `main`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.mappings:
            raise ValueError("a unit needs at least one mapping in `mappings`")
        return self

    def references(self) -> Iterable[Reference]:
        """Return the references of the unit's mappings to anything outside of it."""
        for name, mapping in self.mappings.items():
            for each in mapping.references():
                if each.category != "mapping" or each.name.partition(":")[0] not in self.mappings:
                    yield Reference(each.category, each.name, ("mappings", name, *each.path))

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the unit's mappings."""
        return tuple(self.mappings)

    def has_main(self) -> bool:
        """Return whether one of its mappings is `main`."""
        return MAIN in self.mappings

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the project's mappings that the unit's mappings read."""
        names = (name for mapping in self.mappings.values() for name in mapping.inputs(workspace))
        return tuple(dict.fromkeys(n for n in names if n.partition(":")[0] not in self.mappings))

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return every resource that one of the unit's mappings depends on."""
        inner = workspace.unit(self.mappings)
        return frozenset().union(*(inner.required(name) for name in self.mappings))

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the frame of `main`."""
        return self.transform_output(workspace, MAIN)

    def transform_output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the frame of one of the unit's mappings; what they report is reported of the unit."""
        inner = workspace.unit(self.mappings)
        frame = inner.frame(name)
        for note in (each for notes in inner.notes.values() for each in notes):
            self.note(workspace, note)
        return frame
