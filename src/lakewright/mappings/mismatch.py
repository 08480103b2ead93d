"""Policies for actual columns that differ from the declared ones."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator

from lakewright.errors import TargetError
from lakewright.lake.columns import engine_type
from lakewright.lake.schema_differences import fits
from lakewright.spec.models.base import upper
from lakewright.spec.models.fields import Field

__all__ = ["ColumnPolicy", "ColumnPolicyText", "TypePolicy", "TypePolicyText"]


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
