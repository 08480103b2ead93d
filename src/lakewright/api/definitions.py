"""Jobs, relations and mappings of a loaded project."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lakewright.api.arguments import Range
from lakewright.api.checked import checked_methods
from lakewright.api.opened import Opened
from lakewright.errors import SpecError, UsageError
from lakewright.spec.models import job as spec
from lakewright.spec.suggestions import suggestion
from lakewright.usecases.reading import read_mapping, read_relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Job", "Mapping", "Relation", "named"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a loaded project.

    Attributes:
        parameters: The type of each parameter, by name.
        targets: Names of its targets, as written.
    """

    name: str
    description: str | None
    parameters: abc.Mapping[str, str]
    targets: tuple[str, ...]

    @classmethod
    def of(cls, name: str, declared: spec.Job) -> Job:
        """Return a declared job."""
        types = {parameter.name: parameter.type.value for parameter in declared.parameters}
        return cls(name, declared.description, types, tuple(declared.targets))


@checked_methods
@dataclass(frozen=True, slots=True, repr=False)
class Relation:
    """A relation of a loaded project: a declared location of rows."""

    name: str
    kind: str
    _opened: Opened

    def read(self, *, partition: abc.Mapping[str, object] | None = None, **values: object) -> DataFrame:
        """Return its rows as a DataFrame of `Project.spark`.

        Args:
            partition: Values, or lists of them, by partition column; without it, all rows.
            **values: Values of names that its declaration uses, such as a job's parameters.

        Raises:
            SpecError: Its declaration uses other names, or it has no such partition column.
            UsageError: The value of a partition column is a `Range`.
        """
        for column, value in (partition or {}).items():
            if isinstance(value, Range):
                raise UsageError(
                    f"partition column {column}: a Range is not taken, only values",
                    remedy=f"Give a list of values, or filter the rows: read().where(…{column}…).",
                )
        given = self._opened.values(values)
        return self._opened.read(lambda app: read_relation(app, self.name, partition=partition, values=given))

    def __repr__(self) -> str:
        return f"<Relation {self.name} ({self.kind})>"


@checked_methods
@dataclass(frozen=True, slots=True, repr=False)
class Mapping:
    """A mapping of a loaded project: a declared transformation of rows."""

    name: str
    kind: str
    _opened: Opened

    def read(self, **values: object) -> DataFrame:
        """Return its rows as a DataFrame of `Project.spark`; they are computed when the frame is used.

        Args:
            **values: Values of names that its declaration uses, such as a job's parameters.

        Raises:
            SpecError: Its declaration, or one that it reads, uses other names.
        """
        given = self._opened.values(values)
        return self._opened.read(lambda app: read_mapping(app, self.name, values=given))

    def __repr__(self) -> str:
        return f"<Mapping {self.name} ({self.kind})>"


def named(among: abc.Mapping[str, T], category: str, name: str) -> T:
    """Return the definition of a name.

    Raises:
        SpecError: There is none.
    """
    if name not in among:
        raise SpecError.of(f"there is no {category} {name!r}", remedy=suggestion(name, among))
    return among[name]
