"""NaN and infinities in frames that are landed as JSON, which has no numbers for them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.measures import measured
from lakewright.schema.sql import name_sql
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

    from lakewright.spec.models.entity import Entity

__all__ = ["OddNumbers"]

log = logging.getLogger(__name__)

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class OddNumbers:
    """Looks for such values in columns of which the entity declares no type, while the frame is written.

    Attributes:
        observed: The frame that is to be written.
        columns: The columns.
        observation: What is measured of them.
    """

    observed: DataFrame
    columns: tuple[str, ...]
    observation: Observation

    @classmethod
    def of(cls, frame: DataFrame, entity: Entity) -> OddNumbers | None:
        """Return the columns of a frame that may have such values; None if there are none."""
        from pyspark.sql import Observation, functions

        declared = {column.source.lower() for column in entity.columns if column.type is not None}
        columns = tuple(
            field.name
            for field in frame.schema.fields
            if field.dataType.typeName() in ("float", "double") and field.name.lower() not in declared
        )
        if not columns:
            return None
        observation, values = Observation(), [functions.col(name_sql(name)) for name in columns]
        found = [
            functions.max(functions.isnan(value) | (functions.abs(value) == float("inf"))).alias(str(number))
            for number, value in enumerate(values)
        ]
        return cls(frame.observe(observation, *found), columns, observation)

    def warn(self, entity: Entity) -> None:
        """Warn of the columns that have such values, once they are written."""
        found = measured(self.observation) or {}
        names = [repr(name) for number, name in enumerate(self.columns) if found.get(str(number))]
        if names:
            log.warning(
                "%s: %s %s NaN or infinities, which JSON has as texts only: declare the `datatype` double, "
                "or the column is one of texts in silver, too",
                *(entity.called, first_of(names, _MOST_NAMED), "has" if len(names) == 1 else "have"),
            )
