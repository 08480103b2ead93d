"""The `primaryKey` check: some columns identify each row."""

from __future__ import annotations

from pydantic import Field as Declared

from lakewright.documentation.checks.check import KeyCheck
from lakewright.spec.models.base import Texts

__all__ = ["PrimaryKeyCheck"]


class PrimaryKeyCheck(KeyCheck):
    """Holds if no two rows have equal values in the columns; rows with nulls only are ignored."""

    columns: Texts = Declared(min_length=1, description="Columns of the key.")

    def claim(self, column: str | None) -> str:
        """Return that the columns are a primary key."""
        return f"{', '.join(self.columns)} is a primary key"

    def key(self, column: str | None) -> tuple[str, ...]:
        """Return the columns."""
        return self.columns
