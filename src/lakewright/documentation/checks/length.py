"""The `length` check: values have an allowed number of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.documentation.checks.check import RowCheck
from lakewright.lake.columns import column as column_of
from lakewright.spec.models.base import inconsistent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["LengthCheck"]


class LengthCheck(RowCheck):
    """Holds if each value is null, or its number of characters is within the bounds."""

    minimum: int | None = Declared(default=None, ge=0, description="Smallest number of characters.")
    maximum: int | None = Declared(default=None, ge=0, description="Largest number of characters.")
    length: int | None = Declared(
        default=None, ge=0, description="Exact number of characters, instead of both."
    )

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.minimum is None and self.maximum is None and self.length is None:
            raise inconsistent("a length check needs a `minimum`, a `maximum` or a `length`")
        return self

    def claim(self, column: str | None) -> str:
        """Return the allowed number of characters."""
        least, most = self._bounds()
        if least == most:
            amount = f"{least}"
        elif most is None:
            amount = f"at least {least}"
        else:
            amount = f"at most {most}" if least is None else f"{least} to {most}"
        return f"{self.needed(column)} has {amount} characters"

    def _bounds(self) -> tuple[int | None, int | None]:
        if self.length is not None:
            return self.length, self.length
        return self.minimum, self.maximum

    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return that the length is within its bounds."""
        from pyspark.sql import functions

        size = functions.length(column_of(self.needed(column)).cast("string"))
        least, most = self._bounds()
        within = functions.lit(True)
        if least is not None:
            within &= size >= least
        return within if most is None else within & (size <= most)
