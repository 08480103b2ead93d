"""The base class of measures, which return metrics."""

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
    """A number, with labels that distinguish it from others of the same name."""

    name: str
    value: int | float | None
    labels: Mapping[str, str] = field(default_factory=dict)


class Measure(Named):
    """A measure that returns metrics."""

    description: str | None = Declared(default=None, description="Description for people.")

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that taking the measure reads."""

    @abstractmethod
    def take(self, workspace: Workspace) -> tuple[Measurement, ...]:
        """Return the measured numbers."""
