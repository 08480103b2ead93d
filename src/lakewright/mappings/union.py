"""The `union` mapping: combines the rows of several mappings, with columns matched by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.columns import conform, fields_of
from lakewright.mappings.mapping import Input, Mapping
from lakewright.schema.fits import merge
from lakewright.schema.scalars import digits_of
from lakewright.schema.shape import arranged, joined_shape, leaves
from lakewright.schema.types import VOID, Decimal, Type
from lakewright.spec.models.base import Listed, Reference
from lakewright.spec.models.fields import Field, TypeText
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["UnionMapping"]


class UnionMapping(Mapping):
    """Appends the rows of its inputs; a column that an input does not have is null there."""

    union_inputs: Listed[Input] = Declared(alias="inputs", description="Names of the mappings.", min_length=1)
    columns: dict[str, TypeText] | None = Declared(
        default=None,
        description="Columns of the result with their types; default: all columns of all inputs.",
    )
    distinct: bool = Declared(default=False, description="Whether to remove duplicate rows.")

    def references(self) -> Iterable[Reference]:
        """Return the mappings."""
        return [Reference("mapping", name, ("inputs", index)) for index, name in enumerate(self.union_inputs)]

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return all rows, with all columns of all inputs or with the declared ones.

        Raises:
            SpecError: No decimal holds the digits of a column in all inputs; Spark would cut fractions.
        """
        frames = [workspace.frame(name) for name in self.union_inputs]
        if self.columns is not None:
            absent = [
                name for name in self.columns if not any(find_name(each.columns, name) for each in frames)
            ]
            if absent:
                text = f"mapping {self.name!r}: no input has the column {', '.join(absent)}, which is null"
                workspace.notes.add(self.name, lambda: text)
            fields = [Field(name=name, type=found) for name, found in self.columns.items()]
            frames = [conform(frame, fields) for frame in frames]
        frames = _with_one_shape(frames)
        _check_decimals(frames)
        merged = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
        return merged.distinct() if self.distinct else merged


def _check_decimals(frames: Sequence[DataFrame]) -> None:
    """Raise an error for the first number of which no type of Spark holds all digits.

    Spark takes as many digits before the decimal point as any input has, and cuts fractions without a word.
    """
    types: dict[str, list[Type]] = {}
    for frame in frames:
        for field in fields_of(frame.schema):
            for path, kind in leaves(field.type, field.name.lower()):
                types.setdefault(path, []).append(kind)
    for path, found in types.items():
        is_exact = all(digits_of(each) is not None for each in found)
        if is_exact and any(isinstance(each, Decimal) for each in found) and _merged(found) is None:
            kinds = dict.fromkeys(each.ddl for each in found)
            raise SpecError.of(
                f"column {path} is {' in one input and '.join(kinds)} in another, and no decimal holds the "
                "digits of both: Spark would cut fractions",
                remedy="Cast it in the inputs to a type that holds its values, or declare it in `columns`.",
            )


def _merged(types: Iterable[Type]) -> Type | None:
    """Return the type that holds the values of all types; None if there is none."""
    found: Type | None = VOID
    for each in types:
        found = None if found is None else merge(found, each)
    return found


def _with_one_shape(frames: Sequence[DataFrame]) -> list[DataFrame]:
    """Return the frames with the fields of structs inside maps and lists in one order, matched by name.

    Spark matches the columns of a union by name, and structs outside of maps; inside, it counts places.
    """
    shapes: dict[str, Type] = {}
    for frame in frames:
        for field in fields_of(frame.schema):
            name = field.name.lower()
            shapes[name] = joined_shape(shapes[name], field.type) if name in shapes else field.type
    return [
        conform(
            frame,
            [
                field.model_copy(update={"type": arranged(field.type, shapes[field.name.lower()])})
                for field in fields_of(frame.schema)
            ],
        )
        for frame in frames
    ]
