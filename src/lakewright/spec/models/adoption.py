"""Adoption: what the columns of a table that something else made are to the entity that goes on from it.

The names of presets' columns are those that dbt's snapshots and Datalake Foundation give them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from lakewright.spec.models.base import SnakeModel, TextMap, Texts, lower

__all__ = ["ROLES", "Adoption", "AdoptionValue"]

ROLES = ("valid_from", "valid_to", "is_current", "deleted", "last_seen")
"""What a column of the table can be."""

DBT, FOUNDATION = "dbt_snapshot", "datalake_foundation"

_LIKE: Mapping[str, Mapping[str, str]] = {
    DBT: {
        "valid_from": "dbt_valid_from",
        "valid_to": "dbt_valid_to",
        "deleted": "dbt_is_deleted",
        "last_seen": "dbt_updated_at",
    },
    FOUNDATION: {
        "valid_from": "{prefix}ValidFrom",
        "valid_to": "{prefix}ValidTo",
        "is_current": "{prefix}IsCurrent",
        "deleted": "{prefix}deleted",
        "last_seen": "{prefix}lastSeen",
    },
}
"""Roles of the columns in tables of a known make, where the table has them."""


def _short(declared: Any) -> Any:
    """`adopt: dbt_snapshot` is short for `adopt: {like: dbt_snapshot}`; `adopt: true` says nothing more."""
    if not isinstance(declared, (str, bool)):
        return declared
    word = str(declared).strip().lower()
    if word in ("true", "yes", "on"):
        return {}
    return None if word in ("false", "no", "off", "") else {"like": word}


class Adoption(SnakeModel):
    """How the rows of a table that something else made become rows of this entity, once."""

    like: Annotated[Literal["dbt_snapshot", "datalake_foundation"] | None, BeforeValidator(lower)] = Field(
        default=None, description="Made by a tool whose names of columns are known; keys here win over them."
    )
    valid_from: str | None = Field(default=None, description="Column with the instant a version begins at.")
    valid_to: str | None = Field(default=None, description="Column with the instant it ends at.")
    is_current: str | None = Field(default=None, description="Column that tells current versions.")
    deleted: str | None = Field(default=None, description="Column that tells deleted records.")
    last_seen: str | None = Field(default=None, description="Column with the instant a row was last seen.")
    sentinel: Texts = Field(
        default=(), description="Values of valid_to that mean it has no end, 9999-12-31 for one."
    )
    ends: Annotated[Literal["exclusive", "inclusive"], BeforeValidator(lower)] = Field(
        default="exclusive", description="inclusive: valid_to is the last instant, or day, of a version."
    )
    deletes: Annotated[Literal["flag", "row"] | None, BeforeValidator(lower)] = Field(
        default=None,
        description="flag: a deleted version is the last one before the delete; row: one that begins with "
        "it, as for dbt's hard_deletes: new_record.",
    )
    columns: TextMap = Field(
        default_factory=dict, description="Name in silver to the table's column, where they differ."
    )
    drop: Texts = Field(default=(), description="Columns of the table that aren't kept.")

    def roles(self, names: Iterable[str], *, prefix: str, with_times: bool) -> dict[str, str]:
        """Return what columns of a table are: role to name as declared.

        Args:
            names: Columns of the table; those that a preset only supposes count where they are there.
            prefix: Of the lake's system columns.
            with_times: Whether rows are versions; presets' columns about time count only then.
        """
        present = {name.lower() for name in names}
        supposed = {
            role: name.format(prefix=prefix)
            for role, name in _LIKE.get(self.like or "", {}).items()
            if with_times or role in ("deleted", "last_seen")
        }
        found = {role: name for role, name in supposed.items() if name.lower() in present}
        return found | {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Values of valid_to that mean it has no end."""
        return self.sentinel or (("2999-12-31",) if self.like == FOUNDATION else ())

    @property
    def are_deletes_rows(self) -> bool:
        """Whether a deleted version begins with the delete."""
        return self.deletes == "row" or (self.deletes is None and self.like == DBT)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that aren't kept; of a dbt snapshot also the id that it gives its rows."""
        return (*self.drop, "dbt_scd_id") if self.like == DBT else self.drop

    def problems(self, *, is_historic: bool) -> Iterator[str]:
        """Yield what is wrong with it for a strategy."""
        times = [role for role in ("valid_from", "valid_to", "is_current") if getattr(self, role)]
        if is_historic and not self.like and not self.valid_from:
            yield "adopt needs valid_from: the column with the instant from which a row holds"
        if not is_historic and times:
            yield f"adopt: {times[0]} is for historic; a table of merge has one row a key"


AdoptionValue = Annotated[Adoption | None, BeforeValidator(_short)]
"""Keys of an adoption, or the make of the table alone."""
