"""The base of mappings whose columns are declared, because they have no input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.mappings.mapping import Mapping
from lakewright.schemas.schema import DeclaredColumns
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["LiteralMapping"]


class LiteralMapping(DeclaredColumns, Mapping):
    """A mapping with declared columns."""

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the declared columns."""
        return tuple(each.name for each in self.fields(workspace))
