"""The processing of one slice, under the names of Datalake Foundation."""

from __future__ import annotations

from collections.abc import Mapping

from lakewright.api.checked import checked, checked_methods
from lakewright.api.entity import Entity
from lakewright.api.process_entity import process_entity
from lakewright.errors import UsageError
from lakewright.strategies.summary import Summary

__all__ = ["Processing"]

_PROCESSING_TIME = "processing.time"


@checked_methods
class Processing:
    """One slice of an entity, processed under the control of the manifest.

    Args:
        entity: From `Project.entity`.
        slice: Name of the slice in the entity's bronze folder.
        options: `processing.time`: ISO 8601, used instead of the current time. A text that is no time is
            only warned of.
    """

    @checked
    def __init__(self, entity: Entity, slice: str, options: Mapping[str, str] | None = None) -> None:
        self.entity = entity
        self.slice = slice
        self.options = dict(options or {})
        unknown = sorted(self.options.keys() - {_PROCESSING_TIME})
        if unknown:
            raise UsageError(f"unknown option {unknown[0]!r}", remedy=f"There is only {_PROCESSING_TIME}.")

    def process(self, strategy: str | None = None) -> Summary:
        """Process the slice by the entity's strategy, or by another one, and return its metrics.

        Raises:
            LakewrightError: The slice could not be processed: `DuplicateBusinesskeyException`, `ItemFailed`
                and so on. The manifest records the error, too.
        """
        at = self.options.get(_PROCESSING_TIME)
        result = process_entity(
            self.entity._opened,
            self.entity.declared.id,
            self.slice,
            strategy=strategy,
            processing_time=at,
            is_time_lenient=True,
        )
        if result.error is not None:
            raise result.error
        return result.slices[0].summary
