"""What an entity takes over: an existing table, or past versions from before its first slice.

An adopted Delta table becomes the silver table; its columns have roles. The names of the presets are those of
dbt's snapshots and of Datalake Foundation.

Source: the rules of rewinds, "Rebuild"; the rest is Lakewright's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from lakewright.spec.expressions.values import as_flag
from lakewright.spec.models.base import Lower, SnakeModel, TextMap, Texts, inconsistent, lower
from lakewright.spec.models.slice_format import SliceFormatValue

ROLES = ("valid_from", "valid_to", "is_current", "deleted", "last_seen")
"""The roles that a column of the adopted table can have."""

DBT, FOUNDATION = "dbt_snapshot", "datalake_foundation"

LIKE: Mapping[str, Mapping[str, str]] = {
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
"""Names of the columns by role, for each preset. A table may lack some of them."""


def _short(declared: Any) -> Any:
    """Return the map that a short form stands for: `adopt: dbt_snapshot` is `adopt: {like: dbt_snapshot}`."""
    if not isinstance(declared, (str, bool)):
        return declared
    if (flag := as_flag(declared)) is not None:
        return {} if flag else None
    return {"like": lower(declared)} if str(declared).strip() else None


class Adoption(SnakeModel):
    """How the rows of an existing table are converted, once, to rows of this entity."""

    like: Lower[Literal["dbt_snapshot", "datalake_foundation"] | None] = Field(
        default=None, description="Tool that made the table; presets the other keys."
    )
    valid_from: str | None = Field(default=None, description="Column with the start of a version.")
    valid_to: str | None = Field(default=None, description="Column with the end of a version.")
    is_current: str | None = Field(default=None, description="Column that marks current versions.")
    deleted: str | None = Field(default=None, description="Column that marks deleted records.")
    last_seen: str | None = Field(default=None, description="Column with the time a row was last seen.")
    sentinel: Texts = Field(default=(), description="Values of valid_to for no end, such as 9999-12-31.")
    ends: Lower[Literal["exclusive", "inclusive"]] = Field(
        default="exclusive",
        description="Whether valid_to is a version's last instant or day, or the first one after.",
    )
    deletes: Lower[Literal["flag", "row"] | None] = Field(
        default=None,
        description="What marks a delete: a flag of the version before it, or a row that begins with it.",
    )
    columns: TextMap = Field(
        default_factory=dict, description="Column of the table by its name in silver, where different."
    )
    drop: Texts = Field(default=(), description="Columns of the table that are dropped.")

    def roles(self, names: Iterable[str], *, prefix: str, with_times: bool) -> dict[str, str]:
        """Return the column names of a table by role.

        Args:
            names: Columns of the table. Columns of the preset count only if the table has them.
            prefix: Prefix of the lake's system columns.
            with_times: Whether rows are versions. Otherwise the preset's time columns do not count.
        """
        present = {name.lower() for name in names}
        supposed = {
            role: name.format(prefix=prefix)
            for role, name in LIKE.get(self.like or "", {}).items()
            if with_times or role in ("deleted", "last_seen")
        }
        found = {role: name for role, name in supposed.items() if name.lower() in present}
        return found | {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Values of valid_to that mean that a version has no end."""
        return self.sentinel or (("2999-12-31",) if self.like == FOUNDATION else ())

    @property
    def are_deletes_rows(self) -> bool:
        """Whether a delete is a version of its own, in contrast to a flag on the last version."""
        return self.deletes == "row" or (self.deletes is None and self.like == DBT)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that are dropped. For a dbt snapshot they include its row id."""
        return (*self.drop, "dbt_scd_id") if self.like == DBT else self.drop

    def problems(self, *, is_historic: bool) -> Iterator[str]:
        """Yield the problems of this adoption for a strategy."""
        times = [role for role in ("valid_from", "valid_to", "is_current") if getattr(self, role)]
        if is_historic and not self.like and not self.valid_from:
            yield "adopt needs valid_from, the column with the start of each version"
        if not is_historic and times:
            yield f"adopt: {times[0]} is for the strategy historic; a merge table has one row per key"


AdoptionValue = Annotated[Adoption | None, BeforeValidator(_short)]
"""An adoption, written as a map or as the name of a preset."""


class HistoryFrom(SnakeModel):
    """Dated exports in a folder, or a table of versions that another tool made."""

    folder: str | None = Field(
        default=None,
        min_length=1,
        description="Folder of dated exports: a URI, or a path in the lake.",
    )
    table: str | None = Field(
        default=None,
        min_length=1,
        description="Delta table of versions: a name in the catalog, or a path or URI with a slash.",
    )
    valid_from: str = Field(min_length=1, description="Column with the start of a version.")
    valid_to: str | None = Field(
        default=None,
        min_length=1,
        description="Column with the end of a version; default: the next one's start.",
    )
    sentinel: Texts = Field(default=(), description="Values of valid_to for no end, such as 9999-12-31.")
    columns: TextMap = Field(
        default_factory=dict, description="Column of the history by its name in the slices, where different."
    )
    format: SliceFormatValue = Field(
        default=None, description="Format of the files; default: that of the slices."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.folder is None) == (self.table is None):
            raise inconsistent(
                "history_from needs a folder or a table",
                remedy="Give one of them: history_from: {folder: exports, valid_from: exported_on}.",
            )
        if self.table is not None and self.format is not None:
            raise inconsistent("history_from: format is for a folder", remedy="Remove format.")
        if self.sentinel and self.valid_to is None:
            raise inconsistent("history_from: sentinel needs valid_to", remedy="Remove sentinel.")
        return self

    @property
    def place(self) -> str:
        """The folder or the table, as declared."""
        return self.folder or self.table or ""

    @property
    def has_exports(self) -> bool:
        """Whether rows are those of dated exports, in contrast to versions with an end of their own."""
        return self.folder is not None and self.valid_to is None

    @property
    def text(self) -> str:
        """The declaration as a text, which is the same for equal declarations."""
        return json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)

    def problems(self, *, is_historic: bool, has_adoption: bool) -> Iterator[str]:
        """Yield the problems of this declaration for an entity."""
        if not is_historic:
            yield "history_from is for the strategy historic: full and merge keep no versions"
        if has_adoption:
            yield "history_from and adopt exclude each other: an adopted table has its history already"
