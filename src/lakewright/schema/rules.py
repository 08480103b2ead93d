"""What a column declares about how its values are written.

Source: the rules of reading, "What fits".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.schema.fault import Owner


class Unit(StrEnum):
    """The unit of numbers that stand for dates or times, counted since 1970; for Excel since 1900."""

    SECONDS = "s"
    MILLIS = "ms"
    MICROS = "us"
    NANOS = "ns"
    DAYS = "days"
    EXCEL = "excel"


@dataclass(frozen=True, slots=True)
class ValueRules:
    """How the values of a column are converted.

    Attributes:
        zone: The time zone of times without an offset, an IANA name; None if these do not fit a `timestamp`.
        owner: What gives the column its type.
        format: The pattern of dates or times in texts, in Spark's letters; None for ISO 8601.
        unit: What numbers stand for, if the type is a date or time; None if they do not fit.
        rounds: Whether more decimal places than the type has are rounded half up.
        booleans: Texts that stand for true and false instead of the usual ones.
        is_bounded: Whether dates and times that keep their type must lie in the years 0001 to 9999.
        is_assigned: Whether the values are those of a query that are stored, by SQL's rules of assignment:
            numbers are rounded, and what is neither text nor number is cast by Spark.
        is_lenient: Whether all values are cast by Spark, so that one may become null or another.
    """

    zone: str | None = "UTC"
    owner: Owner = Owner.DECLARED
    format: str | None = None
    unit: Unit | None = None
    rounds: bool = False
    booleans: Mapping[str, bool] = field(default_factory=dict)
    is_bounded: bool = False
    is_assigned: bool = False
    is_lenient: bool = False

    @property
    def by_position(self) -> bool:
        """Whether fields of a struct are matched by position if no name is the same."""
        return self.is_assigned or self.is_lenient


STRICT = ValueRules()

ASSIGNED = ValueRules(rounds=True, is_assigned=True)
"""How values of a query are stored."""

LENIENT = ValueRules(is_lenient=True)
"""How values are cast where a project asks for a cast."""
