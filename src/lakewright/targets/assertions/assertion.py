"""What every assertion is: something that must hold of mappings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Named, Reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["Assertion", "MappingAssertion", "Verdict", "shown_rows"]

_SHOWN = 3
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an assertion holds.

    Attributes:
        failures: What doesn't hold, one text each; none where it holds.
    """

    failures: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing fails."""
        return not self.failures


def shown_rows(frame: DataFrame) -> str:
    """Return some of a frame's rows as a text: `id=1, name=null; …`; long values are cut."""
    from lakewright.lake.columns import column

    texts = frame.select(*(column(name).cast("string").alias(name) for name in dict.fromkeys(frame.columns)))
    rows = [
        ", ".join(f"{name}={_cut(value)}" for name, value in row.asDict().items())
        for row in texts.limit(_SHOWN + 1).collect()
    ]
    return "; ".join([*rows[:_SHOWN], *(["…"] if len(rows) > _SHOWN else [])])


def _cut(value: str | None) -> str:
    if value is None:
        return "null"
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"


class Assertion(Named):
    """A check as declared."""

    description: str | None = Declared(default=None, description="What must hold, for people.")

    @property
    def label(self) -> str:
        """The assertion in messages."""
        return f"{self.name} ({self.description})" if self.description else self.name

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what is read to check it."""

    @abstractmethod
    def check(self, workspace: Workspace) -> Verdict:
        """Return whether it holds; what goes wrong while finding out is raised."""


class MappingAssertion(Assertion):
    """A check of one mapping."""

    mapping: str = Declared(description="Name of the mapping.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what the mapping is made of."""
        return workspace.required(self.mapping)
