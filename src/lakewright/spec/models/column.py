"""Columns of an entity, and the transformations that come before them.

Source: `processing-strategies.md`, "Common Processing Pipeline"; names are Datalake Foundation's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from lakewright.spec.models.base import ALSO, Model, SnakeModel, lower
from lakewright.spec.models.fields import TypeText
from lakewright.spec.models.types import Type

__all__ = ["Column", "Injection", "Injections", "Role", "normal_name"]

REMOVED = re.compile(r"[ ,;{}()=+\-.\t\n]")
"""Characters that a table's column names can't hold."""


class Role(StrEnum):
    """What a column is for."""

    BUSINESS_KEY = "businesskey"
    PARTITION = "partition"
    CALCULATED = "calculated"


def normal_name(name: str) -> str:
    """Return a column's name as a table can hold it.

    Example:
        >>> normal_name("net price (EUR)")
        'netpriceEUR'
    """
    return REMOVED.sub("", name)


def _empty_is_none(declared: Any) -> Any:
    return None if isinstance(declared, str) and not declared.strip() else declared


def _lower_all(declared: Any) -> Any:
    return [lower(item) for item in ([declared] if isinstance(declared, str) else declared)]


class Column(SnakeModel):
    """One declared column; columns of the slice that aren't declared are kept as they are."""

    name: str = Field(default="", description="Name in the source; may be empty where it is calculated.")
    newname: Annotated[str | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Name in silver, where it differs."
    )
    datatype: Annotated[TypeText | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Type in silver: string, integer, long, decimal(10,2), date, timestamp …"
    )
    fieldroles: Annotated[tuple[Role, ...], BeforeValidator(_lower_all)] = Field(
        default=(), description="Part of the business key, partition column, made by its expression."
    )
    expression: Annotated[str | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Spark SQL expression; it makes the column calculated."
    )

    @model_validator(mode="after")
    def _whole(self) -> Column:
        if not (self.name.strip() or self.newname):
            raise ValueError("a column needs a name")
        if Role.CALCULATED in self.fieldroles and self.expression is None:
            raise ValueError(f"the calculated column {self.result!r} needs an expression")
        if self.expression is None and not self.name.strip():
            raise ValueError(
                f"the column {self.newname!r} has neither a name in the source nor an expression"
            )
        return self

    @property
    def type(self) -> Type | None:
        """Its declared type."""
        return self.datatype

    @property
    def source(self) -> str:
        """Its name before columns are renamed: in the slice, or where it is calculated its own."""
        return self.name if self.name.strip() else self.newname or ""

    @property
    def result(self) -> str:
        """Its name after columns are renamed, as written."""
        return self.newname or self.name

    @property
    def silver(self) -> str:
        """Its name in the silver table."""
        return normal_name(self.result)

    @property
    def is_calculated(self) -> bool:
        """Whether an expression makes it."""
        return self.expression is not None

    @property
    def is_business_key(self) -> bool:
        """Whether it is part of the business key."""
        return Role.BUSINESS_KEY in self.fieldroles

    @property
    def is_partition(self) -> bool:
        """Whether silver is partitioned by it."""
        return Role.PARTITION in self.fieldroles


class Injection(Model):
    """One step of the transformations: what a slice's columns become."""

    model_config = ConfigDict(
        json_schema_extra={ALSO: [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    )

    select: tuple[str, ...] = Field(
        default=(), description="Spark SQL expressions that make the columns; * keeps all that are there."
    )
    column: str | None = Field(
        default=None, description="In place of those: one column to be added or replaced."
    )
    expression: str | None = Field(default=None, description="Its Spark SQL expression.")

    @model_validator(mode="before")
    @classmethod
    def _either_form(cls, declared: Any) -> Any:
        if isinstance(declared, str):
            return {"select": [declared]}
        return {"select": declared} if isinstance(declared, list) else declared

    @model_validator(mode="after")
    def _whole(self) -> Injection:
        if bool(self.select) == bool(self.column) or bool(self.column) != bool(self.expression):
            raise ValueError("a transformation is a list of expressions, or has both column and expression")
        return self


def _injections(declared: Any) -> Any:
    """A single step needs no list around it, but a list of texts is one step, not several."""
    if isinstance(declared, (str, Mapping)):
        return [declared]
    return declared


Injections = Annotated[tuple[Injection, ...], BeforeValidator(_injections)]
"""Steps in order: lists of expressions, single expressions, or column and expression."""
