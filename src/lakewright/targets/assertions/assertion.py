"""The base class of assertions: conditions that must hold for mappings."""

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

__all__ = ["Assertion", "MappingAssertion", "Verdict", "check_not_empty", "shown_rows"]

_SHOWN = 3
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an assertion.

    Attributes:
        failures: A description of each condition that does not hold.
    """

    failures: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every condition holds."""
        return not self.failures


def check_not_empty(expected: tuple[str, ...]) -> tuple[str, ...]:
    """Return what an assertion expects, which would hold always if it were nothing.

    Raises:
        ValueError: It expects nothing.
    """
    if not expected:
        raise ValueError(
            "it is empty, so that the assertion checks nothing; write at least one, or remove it"
        )
    return expected


def shown_rows(frame: DataFrame) -> str:
    """Return some of a frame's rows as text: `id=1, name=null; …`. Long values are cut."""
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
    """A condition that must hold."""

    description: str | None = Declared(default=None, description="Description for people.")

    @property
    def label(self) -> str:
        """The assertion as messages name it."""
        return f"{self.name} ({self.description})" if self.description else self.name

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that checking reads."""

    @abstractmethod
    def check(self, workspace: Workspace) -> Verdict:
        """Return whether the assertion holds; an error while checking is raised."""


class MappingAssertion(Assertion):
    """An assertion about one mapping."""

    mapping: str = Declared(description="Name of the mapping.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)
