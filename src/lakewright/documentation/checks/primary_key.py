"""The `primaryKey` check: columns that tell each row from every other."""

from __future__ import annotations

from pydantic import Field as Declared

from lakewright.documentation.checks.check import KeyCheck
from lakewright.spec.models.base import Texts

__all__ = ["PrimaryKeyCheck"]


class PrimaryKeyCheck(KeyCheck):
    """Holds if no two rows have the same values in the columns; rows without any are left out."""

    columns: Texts = Declared(min_length=1, description="The columns of the key.")

    def claim(self, column: str | None) -> str:
        """Return what must hold."""
        del column
        return f"{', '.join(self.columns)} is a primary key"

    def key(self, column: str | None) -> tuple[str, ...]:
        """Return the columns."""
        del column
        return self.columns
