"""Settings of entities, and the source connections from which entities inherit settings.

Source: `processing-strategies.md`; names and shapes are Datalake Foundation's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from lakewright.spec.models.adoption import AdoptionValue
from lakewright.spec.models.base import Named, SnakeModel, TextMap, Texts, lower
from lakewright.spec.models.lake import PATH_TEMPLATES, OutputText
from lakewright.spec.models.maintenance import Maintenance
from lakewright.spec.suggestions import nearest

__all__ = ["PLACE_TEMPLATES", "EntitySettings", "SourceConnection", "nearest_setting"]

PLACE_TEMPLATES = (*PATH_TEMPLATES, "bronze_table", "silver_table")
"""Settings that are templates, in which an entity's own names may stand."""


class EntitySettings(SnakeModel):
    """Settings of an entity over its connection's; keys without a meaning here are kept for templates."""

    model_config = ConfigDict(extra="allow")

    raw_path: str | None = Field(
        default=None,
        description="Template of the path below `raw`, where deliveries lie before they are slices; only for "
        "what lands them.",
    )
    bronze_path: str | None = Field(default=None, description="Template of the path below `bronze`.")
    silver_path: str | None = Field(default=None, description="Template of the path below `silver`.")
    bronze_table: str | None = Field(
        default=None, description="Accepted with a warning: slices are files or folders, never a table."
    )
    silver_table: str | None = Field(default=None, description="Template of the catalog table.")
    output_method: OutputText | None = Field(
        default=None, description="Where its table is found, over the lake's."
    )
    delete_missing: bool = Field(
        default=False, description="Whether records missing from a slice are soft-deleted."
    )
    delete_scope: Annotated[Literal["closed", "open", "full"], BeforeValidator(lower)] = Field(
        default="closed",
        description="Window of delete_missing: closed, open (without its lower end), or full: a slice is "
        "the whole source.",
    )
    max_delete_ratio: float = Field(
        default=0.5, ge=0, le=1, description="More inferred deletes than this part fail the slice."
    )
    last_seen: Annotated[Literal["column", "on_change"], BeforeValidator(lower)] = Field(
        default="column", description="Whether lastSeen of unchanged rows is written too."
    )
    null_keys: Annotated[Literal["error", "allow"], BeforeValidator(lower)] = Field(
        default="error", description="Whether null is a value of the business key."
    )
    schema_drift: Annotated[Literal["evolve", "ignore", "fail"], BeforeValidator(lower)] = Field(
        default="evolve", description="What columns that come, go or change do."
    )
    allow_empty: bool = Field(default=False, description="Whether an empty slice may empty a table (full).")
    late_slices: Annotated[Literal["refuse", "apply"], BeforeValidator(lower)] = Field(
        default="refuse", description="What happens to a slice older than one already processed."
    )
    partition_moves: Annotated[Literal["allow", "never"], BeforeValidator(lower)] = Field(
        default="allow",
        description="never: a record keeps its partition, so that a merge may look only there.",
    )
    hash_exclude: Texts = Field(default=(), description="Columns that don't count as a change.")
    bronze_format: Annotated[Literal["parquet", "csv", "json", "avro", "orc"], BeforeValidator(lower)] = (
        Field(default="parquet", description="Format of the slices.")
    )
    adopt: AdoptionValue = Field(
        default=None, description="What columns are in a table that something else made, to go on from it."
    )
    table_properties: TextMap = Field(default_factory=dict, description="Delta table properties.")
    maintenance: Maintenance = Field(
        default_factory=Maintenance, description="When its table's files are brought together."
    )

    @property
    def free(self) -> Mapping[str, Any]:
        """The keys without a meaning here."""
        return self.model_extra or {}


@lru_cache(maxsize=1024)
def nearest_setting(key: str) -> str | None:
    """Return the setting with a meaning that a free key is nearly the name of, or None.

    Example:
        >>> nearest_setting("null_key"), nearest_setting("raw_data")
        ('null_keys', None)
    """
    if key in EntitySettings.model_fields:
        return None
    squeezed = key.replace("_", "").replace("-", "").lower()
    known = {name.replace("_", ""): name for name in EntitySettings.model_fields}
    found = nearest(squeezed, known)
    is_near = found is not None and _distance(squeezed, found) <= max(1, len(found) // 4)
    return known[found] if found is not None and is_near else None


def _distance(one: str, other: str) -> int:
    """Return how many characters must be added, removed or replaced between two short texts."""
    row = list(range(len(other) + 1))
    for index, left in enumerate(one, 1):
        previous, row[0] = row[0], index
        for column, right in enumerate(other, 1):
            previous, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, previous + (left != right)),
            )
    return row[-1]


class SourceConnection(Named):
    """A source system, as Datalake Foundation declares it: settings that its entities share."""

    model_config = ConfigDict(alias_generator=None)

    enabled: bool = Field(default=True, description="Whether its entities are processed.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of all its entities.")
    description: str | None = Field(default=None, description="What it is.")
