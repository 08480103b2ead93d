"""The base class of schemas."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from lakewright.spec.models.base import Named
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["Schema"]


class Schema(Named):
    """Declares the columns of a relation, a mapping or a check."""

    @abstractmethod
    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns, in order."""

    def primary_key(self) -> tuple[str, ...]:
        """Return the names of the columns that identify a row; none if no key is declared."""
        return ()

    def mappings(self) -> tuple[str, ...]:
        """Return the names of the mappings that the columns are taken from."""
        return ()
