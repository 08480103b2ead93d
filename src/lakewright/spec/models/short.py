"""The short form of entities and tables, as a project file declares them.

It is read into the same definitions as the long forms: see `spec.loading.short_form`.

Source: the rules of the short form, "A whole project".
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from lakewright.spec.models.base import ALSO, Lower, SnakeModel, TextMap, Texts, inconsistent, lower
from lakewright.spec.models.column import ColumnKeys
from lakewright.spec.models.documentation import Checks
from lakewright.spec.models.entity_settings import EntityKeys, EntitySettings
from lakewright.spec.models.fields import TypeText
from lakewright.spec.models.text_marks import SqlText

DELETES = ("none", "snapshot", "window")
"""The ways in which an entity's records are deleted, beside a flag."""

_FLAG = re.compile(r"flag\s+(\S.*)")


def flag_of(declared: Any) -> str | None:
    """Return the column that `deletes: flag COLUMN` or `deletes: {flag: COLUMN}` names, or None.

    Example:
        >>> flag_of("flag removed"), flag_of({"flag": "removed"}), flag_of("snapshot")
        ('removed', 'removed', None)
    """
    if isinstance(declared, dict) and set(declared) == {"flag"}:
        return str(declared["flag"])
    found = _FLAG.fullmatch(declared.strip()) if isinstance(declared, str) else None
    return None if found is None else found[1]


def _deletes(declared: Any) -> Any:
    if flag_of(declared) is None and lower(declared) not in DELETES:
        raise inconsistent(
            f"deletes: {declared!r} is none of none, flag COLUMN, snapshot and window",
            remedy="snapshot: each slice is the whole source; window: it is, between two watermarks; flag: a "
            "column of the slice says which records are deleted.",
        )
    return declared


def _typed(declared: Any) -> Any:
    return {"type": declared} if isinstance(declared, str) else declared


class ShortColumn(ColumnKeys):
    """One column: its type alone, or a map."""

    type: TypeText | None = Field(default=None, description="Type in silver.")
    rename: str | None = Field(default=None, description="Name in the table, if it differs.")
    checks: Checks = Field(default=(), description="Checks of its values.")


_TEXT_TOO = Field(json_schema_extra={ALSO: [{"type": "string"}]})

Columns = dict[str, Annotated[ShortColumn, BeforeValidator(_typed), _TEXT_TOO]]


class ShortEntity(EntityKeys, EntitySettings):
    """A silver table, and the files that fill it. Every setting of an entity stands beside these keys."""

    model_config = ConfigDict(extra="forbid")

    source: str | None = Field(
        default=None,
        alias="from",
        min_length=1,
        description="Its files: a folder or a pattern; default: `bronze/<name>` in the lake.",
    )
    key: Texts = Field(default=(), description="The columns that identify a record.")
    strategy: Lower[Literal["full", "merge", "historic"] | None] = Field(
        default=None, description="Default: merge with a key, full without."
    )
    columns: Columns = Field(default_factory=dict, description="Columns with a type or more, by name.")
    deletes: Annotated[str | TextMap, BeforeValidator(_deletes)] = Field(
        default="none",
        description="snapshot: each slice is the whole source, so missing records are deleted. window: the "
        "same between watermarks. `flag COLUMN`: a column marks deletes.",
    )
    order_by: str | None = Field(default=None, description="Column that orders the states of a record.")
    partition_by: Texts = Field(default=(), description="Columns by which the table is partitioned.")
    id: str | None = Field(default=None, description="Stable identity; default the name.")
    connection: str | None = Field(default=None, description="A connection whose settings it inherits.")

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if self.strategy in ("merge", "historic") and not self.key:
            raise inconsistent(
                f"the strategy {self.strategy} needs a key", remedy="Name its columns: key: id."
            )
        return self


class ShortTableColumn(SnakeModel):
    """One column of a table: its description alone, or a map."""

    description: str | None = Field(default=None, description="What the column contains.")
    checks: Checks = Field(default=(), description="Checks of its values.")


def _described(declared: Any) -> Any:
    return {"description": declared} if isinstance(declared, str) else declared


class ShortTable(SnakeModel):
    """A table that a query or a function makes: a relation, a mapping and a target of one name."""

    sql: Annotated[str | None, SqlText.QUERY] = Field(
        default=None, description="The query, or the path of a file with it, such as sql/revenue.sql."
    )
    python: str | None = Field(
        default=None, pattern=r"^[^:]+:\w+$", description="A function: `FILE:FUNCTION`."
    )
    inputs: Texts = Field(default=(), description="What the function gets: entities, tables, mappings.")
    description: str | None = Field(default=None, description="What a row describes.")
    partition_by: Texts = Field(default=(), description="Columns by which the table is partitioned.")
    mode: str | None = Field(default=None, description="OVERWRITE, APPEND, UPDATE …, as of targets.")
    key: Texts = Field(default=(), description="Columns that identify a row in mode UPDATE.")
    build_policy: str | None = Field(
        default=None, alias="buildPolicy", description="When it is built, as of targets."
    )
    location: str | None = Field(default=None, description="Its folder; default `gold/<name>` in the lake.")
    table: str | None = Field(default=None, description="Its name in the catalog, `database.table`.")
    columns: dict[str, Annotated[ShortTableColumn, BeforeValidator(_described), _TEXT_TOO]] = Field(
        default_factory=dict, description="Descriptions of columns, with checks."
    )
    checks: dict[str, Checks] = Field(default_factory=dict, description="Checks by column.")

    @model_validator(mode="after")
    def _one_query(self) -> Self:
        if (self.sql is None) == (self.python is None):
            raise inconsistent("a table needs either sql or python")
        if self.inputs and self.python is None:
            raise inconsistent("inputs are those of a python function: a query names what it reads")
        return self
