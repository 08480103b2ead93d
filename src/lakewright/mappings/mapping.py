"""The base of all mappings: a named, lazy transformation of relations and other mappings into a frame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field as Declared

from lakewright.errors import Fault, SpecError
from lakewright.lake.set_operations import cut_columns
from lakewright.lake.spark_errors import located_rejection
from lakewright.plan.resource import Resource
from lakewright.spark.engine import analyzed
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Named, RefersTo, from_text
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.models.text_marks import SqlText
from lakewright.spec.suggestions import suggestion
from lakewright.workspace.query import all_rows
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class CacheLevel(StrEnum):
    """Storage level of a mapping's rows after their first use."""

    NONE = "NONE"
    DISK_ONLY = "DISK_ONLY"
    MEMORY_ONLY = "MEMORY_ONLY"
    MEMORY_ONLY_SER = "MEMORY_ONLY_SER"
    MEMORY_AND_DISK = "MEMORY_AND_DISK"
    MEMORY_AND_DISK_SER = "MEMORY_AND_DISK_SER"


MAIN = "main"
"""The output that the plain name of a mapping means."""

Input = Annotated[str, from_text(lambda name: name.removesuffix(f":{MAIN}")), RefersTo.MAPPING]
"""A reference to a mapping; `name:main` means the same as `name`."""


def _unquoted(name: str) -> str:
    is_quoted = len(name) > 2 and name[0] == name[-1] == "`"
    return name[1:-1].replace("``", "`") if is_quoted else name


ColumnName = Annotated[str, from_text(_unquoted)]
"""The name of a column, which may stand in backticks as in SQL; dots belong to the name in either form."""


def check_distinct(names: Iterable[str], when: str, remedy: str) -> None:
    """Check that no columns have the same name, but for case.

    Raises:
        SpecError: Some have.
    """
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SpecError.of(f"two columns become {name!r} {when}", remedy=remedy)
        seen.add(name.lower())


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column of an input that a declaration names.

    Attributes:
        input: The mapping that should have it.
        name: Its name, or the path of a field.
        place: The keys of the declaration below which it is named.
    """

    input: str
    name: str
    place: tuple[str | int, ...]


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

    @property
    def label(self) -> str:
        """The mapping as messages name it."""
        return f"mapping {self.name!r}"

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the names of the mappings that this one reads, without duplicates."""
        return tuple(dict.fromkeys(each.name for each in self.references() if each.category == "mapping"))

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return every resource that the frame depends on, through all inputs."""
        return frozenset().union(*(workspace.required(name) for name in self.inputs(workspace)))

    def outputs(self) -> tuple[str, ...]:
        """Return the names of its outputs, which are read as `name:output`; its plain name means `main`."""
        return (MAIN,)

    def output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the frame of another output than `main`.

        Raises:
            SpecError: There is no such output.
        """
        self.check_output(name)
        with self._located(workspace):
            return self.transform_output(workspace, name)

    def check_output(self, name: str) -> None:
        """Check that there is an output of this name; an empty one is left to `check_main`.

        Raises:
            SpecError: There is none.
        """
        if name and name not in self.outputs():
            listed = ", ".join(self.outputs())
            message, remedy = f"{self.label} has no output {name!r}", f"Its outputs are {listed}."
            raise SpecError([Fault(message, remedy=remedy, subject=self.label)])

    def check_main(self) -> None:
        """Check that there is a frame that the plain name of the mapping means.

        Raises:
            SpecError: There are outputs with names only.
        """
        if MAIN not in self.outputs():
            listed = ", ".join(f"{self.name}:{output}" for output in self.outputs())
            message = f"{self.label} has no output main, so its plain name means nothing"
            raise SpecError([Fault(message, remedy=f"Read {listed}.", subject=self.label)])

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
        message = f"{self.label} of kind {self.kind!r} cannot be used in a view"
        remedy = "Use mappings of kind sql, filter, alias and relation."
        raise SpecError([Fault(message, remedy=remedy, subject=self.label)])

    def build(self, workspace: Workspace) -> DataFrame:
        """Return the kind's frame, filtered, with the configured cache and hint."""
        self.check_main()
        from pyspark import StorageLevel

        with self._located(workspace):
            frame = self.transform(workspace)
            if self.filter:
                frame = frame.where(self.filter)
            frame = analyzed(frame)
        if self.cache is not CacheLevel.NONE:
            frame = frame.persist(getattr(StorageLevel, self.cache.removesuffix("_SER")))
        return functions.broadcast(frame) if self.broadcast else frame

    def _located(self, workspace: Workspace) -> AbstractContextManager[None]:
        """Raise what Spark's analysis finds in a query or an expression as an error of the declaration."""
        locate = partial(workspace.project.located, "mapping", self.name)
        return located_rejection(self.label, locate, "Correct the mapping, or what it reads.")

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the columns of the frame if declarations say them all, otherwise None; no data is read.

        Args:
            workspace: The names of the instance.
            columns_of: Returns the columns of another mapping in the same way.
        """
        return None

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns of inputs that the declaration names, except those in SQL."""
        return ()

    def note(self, workspace: Workspace, note: Callable[[], str | None]) -> None:
        """Have the run warn of what a function returns, as soon as it is not None."""
        workspace.notes.add(self.name, note)

    def note_cuts(self, workspace: Workspace, query: str, frame: DataFrame) -> None:
        """Have the run warn of set operations of a query that cut fractions.

        Args:
            workspace: Where the frame is made.
            query: The query.
            frame: Its rows.
        """
        for cut in cut_columns(query, frame):
            text = (
                f"{self.label}: {cut.operation} of its query cuts fractions: column {cut.column} is "
                f"{cut.before} in one input and becomes {cut.after}, as no decimal holds the digits of all "
                "inputs. Cast them to a type that does"
            )
            self.note(workspace, partial(str, text))

    def note_absent(
        self,
        workspace: Workspace,
        names: Iterable[str],
        known: Sequence[str],
        *,
        lacks: str = "its input has no column",
        use: str = "",
    ) -> None:
        """Have the run warn of the names that are not among the known columns; case is ignored.

        Args:
            workspace: Where the frame is made.
            names: The columns that the declaration names.
            known: The columns that there are.
            lacks: The words of the warning before the names.
            use: Its words after them.
        """
        there = {name.lower() for name in known}
        absent = [name for name in names if name.lower() not in there]
        if absent:
            asked = suggestion(absent[0], known)
            text = f"{self.label}: {lacks} {', '.join(absent)}{use}"
            self.note(workspace, lambda: text if asked is None else f"{text}; {asked}")

    @abstractmethod
    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the frame of this kind without computing anything."""


class InputMapping(Mapping):
    """A mapping with exactly one input."""

    keeps_columns: ClassVar[bool] = False
    """Whether the frame has the columns of the input, in their order."""

    naming_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that name columns of the input: one, a list of them, or a map by their names."""

    input: Input = Declared(description="Name of the input mapping.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Yield the columns of the input that the declaration names, except those in SQL."""
        for field in self.naming_fields:
            yield from self.named(type(self).model_fields[field].alias or field, getattr(self, field))

    def named(self, key: str, names: str | Iterable[str] | dict[str, Any]) -> Iterator[NamedColumn]:
        """Yield columns of the input that a text, a list or the keys of a map name in the declaration."""
        for index, name in enumerate([names] if isinstance(names, str) else names):
            within = () if isinstance(names, str) else (name if isinstance(names, dict) else index,)
            yield NamedColumn(self.input, name, (key, *within))

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the columns of the frame if declarations say them all: the input's, if they are kept."""
        return columns_of(self.input) if self.keeps_columns else None

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return this kind's transformation of its input."""
        return self.apply(workspace.frame(self.input), workspace)

    @abstractmethod
    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return this kind's transformation of `frame`."""
