"""The `mapping` dataset: the rows of a mapping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import Input
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Reference
from lakewright.targets.datasets.dataset import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["MappingDataset"]


class MappingDataset(Dataset):
    """Reads the rows of a mapping."""

    mapping: Input = Declared(description="Name of the mapping.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)

    def read(self, workspace: Workspace) -> DataFrame:
        """Return the mapping's rows."""
        return workspace.frame(self.mapping)
