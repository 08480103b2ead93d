"""The `schema` mapping: converts its input to the declared columns, according to the policies."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BeforeValidator, model_validator
from pydantic import Field as Declared

from lakewright.errors import TargetError
from lakewright.lake.columns import conform, engine_type, fields_of
from lakewright.lake.schema_differences import fits
from lakewright.mappings.mapping import InputMapping
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, upper
from lakewright.spec.models.fields import Field, TypeText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ColumnPolicy", "ColumnPolicyText", "SchemaMapping", "TypePolicy", "TypePolicyText"]


class ColumnPolicy(StrEnum):
    """Policy for columns that only one side has."""

    IGNORE = "IGNORE"
    ERROR = "ERROR"
    ADD_COLUMNS_OR_IGNORE = "ADD_COLUMNS_OR_IGNORE"
    ADD_COLUMNS_OR_ERROR = "ADD_COLUMNS_OR_ERROR"
    REMOVE_COLUMNS_OR_IGNORE = "REMOVE_COLUMNS_OR_IGNORE"
    REMOVE_COLUMNS_OR_ERROR = "REMOVE_COLUMNS_OR_ERROR"
    ADD_REMOVE_COLUMNS = "ADD_REMOVE_COLUMNS"

    def choose(self, present: Sequence[Field], wanted: Sequence[Field], subject: str) -> list[Field]:
        """Return the columns of the result: declared ones as declared, others unchanged.

        Raises:
            TargetError: The policy does not allow the difference.
        """
        theirs, ours = _names(present), _names(wanted)
        missing = [field for field in wanted if field.name.lower() not in theirs]
        surplus = [field for field in present if field.name.lower() not in ours]
        self._refuse("lacks", missing if self in _MUST_HAVE_ALL else [], subject)
        self._refuse("has also", surplus if self in _MAY_HAVE_NO_MORE else [], subject)
        kept = [field for field in wanted if field not in missing or self in _ADDING]
        return [*kept, *(surplus if self in _KEEPING else [])]

    def _refuse(self, verb: str, fields: Sequence[Field], subject: str) -> None:
        if fields:
            names = ", ".join(field.name for field in fields)
            raise TargetError(
                f"the input of mapping {subject!r} {verb} {names}",
                remedy=f"Correct its declared columns, or choose another columnMismatchPolicy than {self}.",
            )


_ADDING = frozenset(policy for policy in ColumnPolicy if policy.startswith("ADD"))
_MUST_HAVE_ALL = frozenset({ColumnPolicy.ERROR, ColumnPolicy.REMOVE_COLUMNS_OR_ERROR})
_MAY_HAVE_NO_MORE = frozenset({ColumnPolicy.ERROR, ColumnPolicy.ADD_COLUMNS_OR_ERROR})
_KEEPING = frozenset({ColumnPolicy.IGNORE, ColumnPolicy.ADD_COLUMNS_OR_IGNORE})


class TypePolicy(StrEnum):
    """Policy for columns of another type."""

    IGNORE = "IGNORE"
    ERROR = "ERROR"
    CAST_COMPATIBLE_OR_ERROR = "CAST_COMPATIBLE_OR_ERROR"
    CAST_COMPATIBLE_OR_IGNORE = "CAST_COMPATIBLE_OR_IGNORE"
    CAST_ALWAYS = "CAST_ALWAYS"

    def choose(self, wanted: Field, present: Sequence[Field], subject: str) -> Field:
        """Return the column with the type that it has in the result.

        Raises:
            TargetError: The policy does not allow the difference.
        """
        actual = next((field for field in present if field.name.lower() == wanted.name.lower()), wanted)
        if self is TypePolicy.CAST_ALWAYS or engine_type(actual.type) == engine_type(wanted.type):
            return wanted
        is_compatible = self.startswith("CAST_COMPATIBLE") and fits(actual.type, wanted.type)
        if is_compatible:
            return wanted
        if self.endswith("ERROR"):
            raise TargetError(
                f"column {actual.name} of the input of mapping {subject!r} has type {actual.type.ddl}, "
                f"not {wanted.type.ddl}",
                remedy=f"Correct its declared type, or choose another typeMismatchPolicy than {self}.",
            )
        return wanted.model_copy(update={"type": actual.type})


def _names(fields: Sequence[Field]) -> set[str]:
    return {field.name.lower() for field in fields}


ColumnPolicyText = Annotated[ColumnPolicy, BeforeValidator(upper)]
TypePolicyText = Annotated[TypePolicy, BeforeValidator(upper)]


class SchemaMapping(InputMapping):
    """Adds, removes and casts columns to match the declaration."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )
    column_mismatch_policy: ColumnPolicyText = Declared(
        default=ColumnPolicy.ADD_REMOVE_COLUMNS, description="What happens to columns that only one side has."
    )
    type_mismatch_policy: TypePolicyText = Declared(
        default=TypePolicy.CAST_ALWAYS, description="What happens to columns of another type."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError("a schema mapping needs either `columns` or `schema`")
        return self

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the declared columns.

        Raises:
            TargetError: There is a difference and the policy is ERROR.
        """
        wanted = self._fields(workspace)
        present = fields_of(frame.schema)
        columns = self.column_mismatch_policy.choose(present, wanted, self.name)
        return conform(
            frame, [self.type_mismatch_policy.choose(field, present, self.name) for field in columns]
        )

    def _fields(self, workspace: Workspace) -> tuple[Field, ...]:
        if self.declared_schema is not None:
            return self.declared_schema.fields(workspace)
        return tuple(Field(name=name, type=found) for name, found in (self.columns or {}).items())
