"""The `schema` mapping: converts its input to the declared columns, according to the policies."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.errors import ColumnMismatch
from lakewright.lake.columns import column, conform, fields_of
from lakewright.mappings.mapping import InputMapping
from lakewright.schema.fits import fits
from lakewright.schema.shape import plain_type
from lakewright.schema.types import Chars, Scalar
from lakewright.schemas.schema import DeclaredColumns
from lakewright.spark.functions import functions
from lakewright.spec.models.base import upper
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


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
            ColumnMismatch: The policy does not allow the difference.
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
            raise ColumnMismatch(
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
            ColumnMismatch: The policy does not allow the difference.
        """
        actual = next((field for field in present if field.name.lower() == wanted.name.lower()), wanted)
        if self is TypePolicy.CAST_ALWAYS or plain_type(actual.type) == plain_type(wanted.type):
            return wanted
        is_compatible = self.startswith("CAST_COMPATIBLE") and fits(actual.type, wanted.type)
        if is_compatible:
            return wanted
        if self.endswith("ERROR"):
            raise ColumnMismatch(
                f"column {actual.name} of the input of mapping {subject!r} has type {actual.type.ddl}, "
                f"not {wanted.type.ddl}",
                remedy=f"Correct its declared type, or choose another typeMismatchPolicy than {self}.",
            )
        return wanted.model_copy(update={"type": actual.type})


class CharPolicy(StrEnum):
    """Policy for texts of a bounded length, `char(n)` and `varchar(n)`."""

    IGNORE = "IGNORE"
    PAD_AND_TRUNCATE = "PAD_AND_TRUNCATE"
    PAD = "PAD"
    TRUNCATE = "TRUNCATE"

    def bounded(self, field: Field) -> Field:
        """Return the column with the type that its values are cast to."""
        if not isinstance(field.type, Chars) or self is CharPolicy.PAD_AND_TRUNCATE:
            return field
        kept = Chars(field.type.length) if self is CharPolicy.TRUNCATE else Scalar("string")
        return field.model_copy(update={"type": kept})

    def padded(self, frame: DataFrame, fields: Sequence[Field]) -> DataFrame:
        """Return the frame with short values of `char(n)` padded, if the policy pads without cutting."""
        for field in fields if self is CharPolicy.PAD else ():
            if isinstance(field.type, Chars) and field.type.is_fixed:
                own, length = column(field.name), field.type.length
                short = functions.length(own) < length
                frame = frame.withColumn(
                    field.name, functions.when(short, functions.rpad(own, length, " ")).otherwise(own)
                )
        return frame


def _names(fields: Sequence[Field]) -> set[str]:
    return {field.name.lower() for field in fields}


ColumnPolicyText = Annotated[ColumnPolicy, BeforeValidator(upper)]
TypePolicyText = Annotated[TypePolicy, BeforeValidator(upper)]
CharPolicyText = Annotated[CharPolicy, BeforeValidator(upper)]


class SchemaMapping(DeclaredColumns, InputMapping):
    """Adds, removes and casts columns to match the declaration."""

    column_mismatch_policy: ColumnPolicyText = Declared(
        default=ColumnPolicy.ADD_REMOVE_COLUMNS, description="What happens to columns that only one side has."
    )
    type_mismatch_policy: TypePolicyText = Declared(
        default=TypePolicy.CAST_ALWAYS, description="What happens to columns of another type."
    )

    char_varchar_policy: CharPolicyText = Declared(
        default=CharPolicy.PAD_AND_TRUNCATE,
        description="Texts that are shorter or longer than `char(n)` and `varchar(n)`.",
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the declared columns.

        Raises:
            ColumnMismatch: There is a difference and the policy is ERROR.
        """
        wanted = self.fields(workspace)
        present = fields_of(frame.schema)
        columns = self.column_mismatch_policy.choose(present, wanted, self.name)
        chosen = [self.type_mismatch_policy.choose(field, present, self.name) for field in columns]
        policy = self.char_varchar_policy
        return policy.padded(conform(frame, [policy.bounded(field) for field in chosen]), chosen)
