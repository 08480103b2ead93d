"""The base of all mappings: a named, lazy transformation of relations and other mappings into a frame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field as Declared

from lakewright.errors import Location, SpecError
from lakewright.lake.spark_errors import located_rejection
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Named, Reference, from_text
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.query import all_rows
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CacheLevel", "Input", "InputMapping", "Mapping"]


class CacheLevel(StrEnum):
    """Storage level of a mapping's rows after their first use."""

    NONE = "NONE"
    DISK_ONLY = "DISK_ONLY"
    MEMORY_ONLY = "MEMORY_ONLY"
    MEMORY_ONLY_SER = "MEMORY_ONLY_SER"
    MEMORY_AND_DISK = "MEMORY_AND_DISK"
    MEMORY_AND_DISK_SER = "MEMORY_AND_DISK_SER"


Input = Annotated[str, from_text(lambda name: name.removesuffix(":main"))]
"""A reference to a mapping; `name:main` means the same as `name`."""


class Mapping(Named):
    """A mapping as declared."""

    description: str | None = Declared(default=None, description="Description for readers.")
    broadcast: bool = Declared(
        default=False, description="Broadcast the whole result to every executor for joins."
    )
    cache: Annotated[CacheLevel, from_text(str.upper)] = Declared(
        default=CacheLevel.NONE, description="Storage level of its rows after their first use."
    )
    filter: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition applied to the result."
    )
    documentation: Documentation | None = Declared(
        default=None, exclude=True, description="What the documentation shows, including checks."
    )
    metadata: Any = Declared(default=None, description="User-defined labels.")

    def mentions(self) -> Iterable[Reference]:
        """Return the definitions that its checks refer to."""
        return () if self.documentation is None else self.documentation.references()

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the names of the mappings that this one reads, without duplicates."""
        del workspace
        return tuple(dict.fromkeys(each.name for each in self.references() if each.category == "mapping"))

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return every resource that the frame depends on, through all inputs."""
        return frozenset().union(*(workspace.required(name) for name in self.inputs(workspace)))

    def versions(self, workspace: Workspace) -> dict[str, str] | None:
        """Return fingerprints of this mapping's own sources, or None if they cannot be determined."""
        del workspace
        return {}

    def outputs(self) -> tuple[str, ...]:
        """Return the names of its outputs besides `main`, which are read as `name:output`."""
        return ()

    def output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the frame of another output than `main`.

        Raises:
            SpecError: There is no such output.
        """
        self.check_output(name)
        with self._located(workspace):
            return self.transform_output(workspace, name)

    def check_output(self, name: str) -> None:
        """Check that there is an output of this name.

        Raises:
            SpecError: There is none.
        """
        known = self.outputs()
        if name not in ("", "main", *known):
            listed = ", ".join(("main", *known))
            raise SpecError.of(
                f"mapping {self.name!r} has no output {name!r}", remedy=f"Its outputs are {listed}."
            )

    def transform_output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the frame of one of `outputs` without computing anything."""
        raise NotImplementedError(f"{self.kind} has the outputs {self.outputs()}, but not {name}")

    def sql_text(self, workspace: Workspace) -> str:
        """Return a query over catalog tables that returns the same rows.

        Raises:
            SpecError: This kind of mapping has no such query.
        """
        query = self.plain_sql(workspace)
        return query if self.filter is None else all_rows(f"({query})", self.filter)

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the query without the mapping's filter."""
        del workspace
        raise SpecError.of(
            f"mapping {self.name!r} of kind {self.kind!r} cannot be used in a view",
            remedy="Use mappings of kind sql, filter, alias and relation.",
        )

    def build(self, workspace: Workspace) -> DataFrame:
        """Return the kind's frame, filtered, with the configured cache and hint."""
        from pyspark import StorageLevel
        from pyspark.sql import functions

        with self._located(workspace):
            frame = self.transform(workspace)
            if self.filter:
                frame = frame.where(self.filter)
        if self.cache is not CacheLevel.NONE:
            frame = frame.persist(getattr(StorageLevel, self.cache.removesuffix("_SER")))
        return functions.broadcast(frame) if self.broadcast else frame

    def _located(self, workspace: Workspace) -> AbstractContextManager[None]:
        """Raise what Spark's analysis finds in a query or an expression as an error of the declaration."""

        def locate() -> Location | None:
            definition = workspace.project.definitions("mapping").get(self.name)
            return None if definition is None else definition.at()

        return located_rejection(f"mapping {self.name!r}", locate, "Correct the mapping, or what it reads.")

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the columns of the frame if declarations say them all, otherwise None; no data is read.

        Args:
            workspace: The names of the instance.
            columns_of: Returns the columns of another mapping in the same way.
        """
        del workspace, columns_of
        return None

    @abstractmethod
    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the frame of this kind without computing anything."""


class InputMapping(Mapping):
    """A mapping with exactly one input."""

    input: Input = Declared(description="Name of the input mapping.")

    def references(self) -> Iterable[Reference]:
        """Return the one input."""
        return [Reference("mapping", self.input, ("input",))]

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return this kind's transformation of its input."""
        return self.apply(workspace.frame(self.input), workspace)

    @abstractmethod
    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return this kind's transformation of `frame`."""
