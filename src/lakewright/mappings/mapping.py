"""What every mapping is: a named step that makes a frame, lazily, from relations and other mappings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.documentation import Documentation
from lakewright.workspace.query import all_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CacheLevel", "Input", "InputMapping", "Mapping"]


class CacheLevel(StrEnum):
    """Where a mapping's rows are kept after their first use."""

    NONE = "NONE"
    DISK_ONLY = "DISK_ONLY"
    MEMORY_ONLY = "MEMORY_ONLY"
    MEMORY_ONLY_SER = "MEMORY_ONLY_SER"
    MEMORY_AND_DISK = "MEMORY_AND_DISK"
    MEMORY_AND_DISK_SER = "MEMORY_AND_DISK_SER"


def _upper(declared: object) -> object:
    return declared.upper() if isinstance(declared, str) else declared


def _main_output(declared: object) -> object:
    return declared.removesuffix(":main") if isinstance(declared, str) else declared


Input = Annotated[str, BeforeValidator(_main_output)]
"""The name of a mapping; `name:main` means the same."""


class Mapping(Named):
    """A mapping as declared."""

    description: str | None = Declared(default=None, description="What it is, for people.")
    broadcast: bool = Declared(
        default=False, description="Send the whole result to every executor for joins."
    )
    cache: Annotated[CacheLevel, BeforeValidator(_upper)] = Declared(
        default=CacheLevel.NONE, description="Where its rows are kept after their first use."
    )
    filter: str | None = Declared(default=None, description="SQL condition on the result.")
    documentation: Documentation | None = Declared(
        default=None, exclude=True, description="What the documentation shows; checks."
    )
    metadata: Any = Declared(default=None, description="Labels of the author's own.")

    def mentions(self) -> Iterable[Reference]:
        """Return what its checks refer to."""
        return () if self.documentation is None else self.documentation.references()

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the names of the mappings that this one reads, each once."""
        del workspace
        return tuple(dict.fromkeys(each.name for each in self.references() if each.category == "mapping"))

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return every resource that the frame is made of, through all inputs."""
        return frozenset().union(*(workspace.required(name) for name in self.inputs(workspace)))

    def versions(self, workspace: Workspace) -> dict[str, str] | None:
        """Return what tells one state of this mapping's own sources from another; None where nothing can."""
        del workspace
        return {}

    def sql_text(self, workspace: Workspace) -> str:
        """Return a query over tables of the catalog that gives the same rows.

        Raises:
            SpecError: This kind of mapping has none.
        """
        query = self.plain_sql(workspace)
        return query if self.filter is None else all_rows(f"({query})", self.filter)

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the query without the mapping's filter."""
        del workspace
        raise SpecError.of(
            f"a view can't be made of mapping {self.name!r}, which is of kind {self.kind!r}",
            remedy="Make it of mappings of kind sql, filter, alias and relation.",
        )

    def build(self, workspace: Workspace) -> DataFrame:
        """Return the frame: what the kind makes, filtered, with the asked-for cache and hint."""
        from pyspark import StorageLevel
        from pyspark.sql import functions

        frame = self.transform(workspace)
        if self.filter:
            frame = frame.where(self.filter)
        if self.cache is not CacheLevel.NONE:
            frame = frame.persist(getattr(StorageLevel, self.cache.removesuffix("_SER")))
        return functions.broadcast(frame) if self.broadcast else frame

    @abstractmethod
    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the frame that this kind makes; nothing is computed yet."""


class InputMapping(Mapping):
    """A mapping of exactly one other."""

    input: Input = Declared(description="Name of the mapping that it reads.")

    def references(self) -> Iterable[Reference]:
        """Return the one input."""
        return [Reference("mapping", self.input, ("input",))]

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return what this kind makes of its input."""
        return self.apply(workspace.frame(self.input), workspace)

    @abstractmethod
    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the frame that this kind makes of `frame`."""
