"""What every measure is: something that gives metrics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Named

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["Measure", "Measurement"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number, with the labels that tell it from others of its name."""

    name: str
    value: int | float | None
    labels: Mapping[str, str] = field(default_factory=dict)


class Measure(Named):
    """A measure as declared."""

    description: str | None = Declared(default=None, description="What is measured, for people.")

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what is read to take it."""

    @abstractmethod
    def take(self, workspace: Workspace) -> tuple[Measurement, ...]:
        """Return what is measured."""
