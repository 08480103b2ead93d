"""Mappings that choose, compute, cast and conform the columns of their input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, ModelWrapValidatorHandler, model_validator
from pydantic import Field as Declared

from lakewright.errors import ColumnMismatch, Fault, SpecError
from lakewright.lake.columns import cast_by_name, column, conform, fields_of
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn
from lakewright.schema.fits import fits
from lakewright.schema.shape import plain_type
from lakewright.schema.types import Chars, Scalar
from lakewright.schemas.schema import DeclaredColumns
from lakewright.spark.functions import functions
from lakewright.spec.models.base import ALSO, Listed, Model, upper
from lakewright.spec.models.fields import Field, TypeText
from lakewright.spec.models.text_marks import SqlText
from lakewright.transform.steps import find_name
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class SelectMapping(InputMapping):
    """Returns one column per entry of `columns`, in their order."""

    columns: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        description="SQL expression of each column of the result."
    )

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the names of the declared columns."""
        return tuple(self.columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return only the declared columns."""
        return frame.select(*(functions.expr(text).alias(name) for name, text in self.columns.items()))


class ProjectedColumn(Model):
    """One column of the result; a plain text is the name of a column to keep unchanged."""

    model_config = ConfigDict(json_schema_extra={ALSO: [{"type": "string"}]})

    column: str = Declared(description="Name in the input.")
    name: str | None = Declared(default=None, description="Name in the result; default: unchanged.")
    type: TypeText | None = Declared(default=None, description="Type in the result; default: unchanged.")
    description: str | None = Declared(default=None, description="Comment of the column.")

    @model_validator(mode="wrap")
    @classmethod
    def _read_text(
        cls, declared: Any, handler: ModelWrapValidatorHandler[ProjectedColumn]
    ) -> ProjectedColumn:
        return handler({"column": declared} if isinstance(declared, str) else declared)


class ProjectMapping(InputMapping):
    """Returns only the listed columns, in their order."""

    columns: Listed[ProjectedColumn] = Declared(description="Columns of the result.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns of the input that are listed."""
        return self.named("columns", [each.column for each in self.columns])

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the listed columns."""
        return tuple(each.name or each.column for each in self.columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the listed columns, renamed and cast."""
        columns = []
        for wanted in self.columns:
            source = column(wanted.column)
            made = source if wanted.type is None else cast_by_name(frame, wanted.column, wanted.type)
            comment = {} if wanted.description is None else {"metadata": {"comment": wanted.description}}
            columns.append(made.alias(wanted.name or wanted.column, **comment))
        return frame.select(*columns)


class DropMapping(InputMapping):
    """Removes columns; the run warns of those that the input does not have."""

    naming_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: Listed[ColumnName] = Declared(description="Columns to remove.")

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns without those that are removed."""
        found = columns_of(self.input)
        dropped = {name.lower() for name in self.columns}
        return None if found is None else tuple(name for name in found if name.lower() not in dropped)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the remaining columns in their order."""
        self.note_absent(workspace, self.columns, frame.columns, use=" to drop")
        return frame.drop(*self.columns)


class CastMapping(InputMapping):
    """Changes the types of columns; names, order and other columns are kept.

    The run warns of columns that the input does not have.
    """

    keeps_columns: ClassVar[bool] = True

    naming_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: dict[str, TypeText] = Declared(description="New type of each column to change.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return all columns, with new types for those in `columns`."""
        self.note_absent(workspace, self.columns, frame.columns, use=" to cast")
        types = {find_name(frame.columns, name): found for name, found in self.columns.items()}
        return frame.select(
            *(
                cast_by_name(frame, name, types[name]).alias(name) if name in types else column(name)
                for name in frame.columns
            )
        )


class ExtendMapping(InputMapping):
    """Adds a column for each entry of `columns`, or replaces the column of that name.

    Expressions may use each other's results; they are evaluated in dependency order.
    """

    columns: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        default_factory=dict, description="SQL expression for each new column."
    )

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns and the new ones."""
        found = columns_of(self.input)
        return None if found is None else tuple(dict.fromkeys((*found, *self.columns)))

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input's columns, with replaced columns in their place and new ones at the end."""
        for name in self.order():
            frame = frame.withColumn(name, functions.expr(self.columns[name]))
        return frame

    def order(self) -> tuple[str, ...]:
        """Return the new columns, each after those that its expression uses.

        Raises:
            SpecError: Expressions depend on each other in a cycle.
        """
        uses = {name: self._uses(name) for name in self.columns}
        try:
            return tuple(TopologicalSorter(uses).static_order())
        except CycleError as cycle:
            chain = " -> ".join(cycle.args[1])
            message = f"columns of {self.label} depend on each other: {chain}"
            remedy = "Compute one of them in an earlier mapping."
            raise SpecError([Fault(message, remedy=remedy, subject=self.label)]) from cycle

    def _uses(self, name: str) -> list[str]:
        words = {word.lower() for word in re.findall(r"\w+", self.columns[name])}
        return [other for other in self.columns if other != name and other.lower() in words]


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
