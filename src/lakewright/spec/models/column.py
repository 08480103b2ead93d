"""Columns of entities, and the transformations that are applied before them.

Source: `processing-strategies.md`, "Common Processing Pipeline". Names are Datalake Foundation's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from lakewright.schema.rules import Unit, ValueRules
from lakewright.schema.types import Decimal, Type
from lakewright.spec.models.base import ALSO, Listed, Lower, Model, SnakeModel
from lakewright.spec.models.fields import TypeText
from lakewright.spec.models.text_marks import SqlText

REMOVED = re.compile(r"[ ,;{}()=+\-.\t\n]")
"""Characters that column names of a table cannot contain."""


_TIMES = ("timestamp", "timestamp_ntz")


class Role(StrEnum):
    """The role of a column."""

    BUSINESS_KEY = "businesskey"
    PARTITION = "partition"
    CALCULATED = "calculated"


def normal_name(name: str) -> str:
    """Return a column's name without the characters that a table does not allow.

    Example:
        >>> normal_name("net price (EUR)")
        'netpriceEUR'
    """
    return REMOVED.sub("", name)


def _empty_is_none(declared: Any) -> Any:
    return None if isinstance(declared, str) and not declared.strip() else declared


class ColumnKeys(SnakeModel):
    """The keys of a column that the short form has, too."""

    expression: Annotated[str | None, BeforeValidator(_empty_is_none), SqlText.EXPRESSION] = Field(
        default=None, description="Spark SQL expression that calculates the column."
    )
    description: Annotated[str | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Comment of the table's column."
    )
    optional: bool = Field(default=False, description="Whether a slice may lack the column.")
    format: str | None = Field(
        default=None, min_length=1, description="Pattern of dates or times in texts, such as dd.MM.yyyy."
    )
    unit: Lower[Unit | None] = Field(
        default=None,
        description="What numbers count: time since 1970, or Excel's days.",
    )
    rounding: Lower[Literal["half_up"] | None] = Field(
        default=None, description="Round numbers with too many decimal places."
    )
    values: dict[str, bool] | None = Field(
        default=None, min_length=1, description="Texts for true and false, such as {J: true}."
    )
    omit: bool = Field(
        default=False, description="Leave the column of the source out; expressions may use it."
    )


class Column(ColumnKeys):
    """One declared column. Undeclared columns of a slice are kept unchanged."""

    name: str = Field(
        default="",
        description="Name in the source; a calculated column has none.",
    )
    newname: Annotated[str | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Name in silver, if it differs."
    )
    datatype: Annotated[TypeText | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Type in silver."
    )
    fieldroles: Listed[Lower[Role]] = Field(
        default=(), description="Part of the business key, partition column, calculated by its expression."
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
        if self.optional and self.is_business_key:
            raise ValueError(f"the column {self.result!r} of the business key can't be optional")
        if self.optional and self.is_calculated:
            raise ValueError(
                f"the calculated column {self.result!r} can't be optional: make the columns so that its "
                "expression uses"
            )
        self._check_rules()
        return self

    def _check_rules(self) -> None:
        """Check that what is said of values goes with the type."""
        kind = "" if self.datatype is None else self.datatype.ddl
        is_time, is_day = kind in _TIMES, kind == "date"
        of_days = self.unit in (Unit.DAYS, Unit.EXCEL)
        needs = {
            "the datatype date or timestamp for `format`": self.format is None or is_time or is_day,
            f"the datatype {'date' if of_days else 'timestamp'} for this `unit`": self.unit is None
            or (is_day if of_days else is_time),
            "either a `format` or a `unit`": self.format is None or self.unit is None,
            "a decimal as datatype for `rounding`": self.rounding is None
            or isinstance(self.datatype, Decimal),
            "the datatype boolean for `values`": self.values is None or kind == "boolean",
        }
        for need, holds in needs.items():
            if not holds:
                raise ValueError(f"the column {self.result!r} needs {need}")
        if self.omit and "." in self.name:
            raise ValueError(f"{self.result!r} can't be left out: only whole columns can")
        if self.omit and (self.is_calculated or self.fieldroles or self.datatype is not None):
            raise ValueError(
                f"the column {self.result!r} is left out, so that it has no type, role or expression"
            )

    def rules(self, zone: str | None) -> ValueRules:
        """Return how its values are converted to its type.

        Args:
            zone: The time zone of times without an offset; None if these are no instants.
        """
        return ValueRules(
            zone,
            format=self.format,
            unit=self.unit,
            rounds=self.rounding is not None,
            booleans=self.values or {},
            is_bounded=True,
        )

    @property
    def type(self) -> Type | None:
        """The declared type."""
        return self.datatype

    @property
    def source(self) -> str:
        """The name before columns are renamed: the name in the slice, or that of the calculated column."""
        return self.name if self.name.strip() else self.newname or ""

    @property
    def result(self) -> str:
        """The name after columns are renamed, as written."""
        return self.newname or self.name

    @property
    def silver(self) -> str:
        """The name in the silver table."""
        return normal_name(self.result)

    @property
    def in_words(self) -> str:
        """The name as declared, in quotes, with its new name if that differs."""
        is_renamed = bool(self.newname) and self.newname != self.source
        return f"{self.source!r} (newname {self.newname!r})" if is_renamed else repr(self.result)

    @property
    def is_calculated(self) -> bool:
        """Whether an expression calculates the column."""
        return self.expression is not None

    @property
    def is_business_key(self) -> bool:
        """Whether the column is part of the business key."""
        return Role.BUSINESS_KEY in self.fieldroles

    @property
    def is_partition(self) -> bool:
        """Whether the silver table is partitioned by the column."""
        return Role.PARTITION in self.fieldroles


class Injection(Model):
    """One transformation of the slice's columns."""

    model_config = ConfigDict(
        json_schema_extra={ALSO: [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    )

    select: Annotated[tuple[str, ...], SqlText.EXPRESSION] = Field(
        default=(), description="Spark SQL expressions that select the columns; * keeps all existing ones."
    )
    column: str | None = Field(default=None, description="Alternatively, one column to add or replace.")
    expression: Annotated[str | None, SqlText.EXPRESSION] = Field(
        default=None, description="Spark SQL expression of that column."
    )

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
    """Return a list of transformations. A list of texts is one transformation, not several."""
    if isinstance(declared, (str, Mapping)):
        return [declared]
    return declared


Injections = Annotated[tuple[Injection, ...], BeforeValidator(_injections)]
"""Transformations in order: lists of expressions, single expressions, or column and expression."""
