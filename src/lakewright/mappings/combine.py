"""Mappings that combine several mappings, choose one of them, or have mappings of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError
from lakewright.lake.columns import column, conform, fields_of
from lakewright.mappings.mapping import MAIN, ColumnName, Input, InputMapping, Mapping
from lakewright.plan.resource import Resource
from lakewright.schema.fits import merge
from lakewright.schema.scalars import digits_of
from lakewright.schema.shape import arranged, joined_shape, leaves
from lakewright.schema.sql import name_sql
from lakewright.schema.types import VOID, Decimal, Type
from lakewright.spark.functions import functions
from lakewright.spec.models.base import KindOf, Listed, Model, NamedMap, Reference, RefersTo, Texts, from_text
from lakewright.spec.models.fields import Field, TypeText
from lakewright.spec.models.text_marks import SqlText
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_TRUE = frozenset(("true", "yes", "1"))
_FALSE = frozenset(("false", "no", "0", ""))


class Case(Model):
    """A mapping and the condition under which it is chosen."""

    condition: str = Declared(description="An expression that gives true or false.")
    input: Input = Declared(description="The mapping to return if the condition holds.")


class CaseMapping(Mapping):
    """Returns the first mapping whose condition holds; conditions are expressions, not SQL."""

    cases: Annotated[Listed[Case], RefersTo.INSIDE] = Declared(
        min_length=1, description="The mappings with their conditions, in order."
    )

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the mapping that is chosen."""
        return (self._chosen(),)

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the query of the mapping that is chosen."""
        return workspace.sql_text(self._chosen())

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the frame of the mapping that is chosen.

        Raises:
            SpecError: No condition holds, or one is neither true nor false.
        """
        return workspace.frame(self._chosen())

    def _chosen(self) -> str:
        for case in self.cases:
            value = case.condition.strip().lower()
            if value in _TRUE:
                return case.input
            if value not in _FALSE:
                raise SpecError.of(
                    f"the condition {case.condition!r} is neither true nor false",
                    remedy="Use an expression that gives true or false, such as ${day.isBefore(first)}.",
                    subject=self.label,
                )
        raise SpecError.of(
            f"none of its {len(self.cases)} conditions holds",
            remedy="Add a last case with the condition true.",
            subject=self.label,
        )


JoinMode = Annotated[
    Literal[
        "inner", "cross", "outer", "full", "full_outer", "left", "left_outer", "left_anti", "left_semi",
        "right", "right_outer",
    ],
    from_text(str.lower),
]  # fmt: skip


class JoinMapping(Mapping):
    """Joins its inputs from left to right.

    With `columns`, the result has these columns once. With `condition`, it has all columns of both; later
    mappings write `input.column` for columns of the same name.
    """

    join_inputs: Annotated[Listed[Input], RefersTo.MAPPING] = Declared(
        alias="inputs", description="Names of the mappings to join."
    )
    mode: JoinMode = Declared(default="left", description="Type of the join.")
    columns: Texts = Declared(default=(), description="Columns of all inputs whose values must be equal.")
    condition: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition on two inputs, by name."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.condition is not None and (self.columns or len(self.join_inputs) != 2):
            raise ValueError("a join by `condition` needs exactly two inputs and no `columns`")
        return self

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the joined rows."""
        frames = [workspace.frame(name).alias(name) for name in self.join_inputs]
        if self.condition is not None:
            return frames[0].join(frames[1], functions.expr(self.condition), self.mode)
        on = list(self.columns) or None
        if on is None and self.mode != "cross" and len(frames) > 1:
            lacks = "has neither columns nor a condition, so that each row joins every row of the other input"
            text = f"{self.label}: {lacks}; if that is meant, declare `mode: cross`"
            self.note(workspace, lambda: text)
        return reduce(lambda left, right: left.join(right, on, self.mode), frames)


class UnionMapping(Mapping):
    """Appends the rows of its inputs; a column that an input does not have is null there."""

    union_inputs: Annotated[Listed[Input], RefersTo.MAPPING] = Declared(
        alias="inputs", description="Names of the mappings.", min_length=1
    )
    columns: dict[str, TypeText] | None = Declared(
        default=None,
        description="Columns of the result; default: all of all inputs.",
    )
    distinct: bool = Declared(default=False, description="Whether to remove duplicate rows.")

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
                text = f"{self.label}: no input has the column {', '.join(absent)}, which is null"
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


class UpsertMapping(InputMapping):
    """Returns the rows of `updates`, and those of `input` whose key is not in `updates`.

    The columns are those of the updates.
    """

    naming_fields: ClassVar[tuple[str, ...]] = ("key_columns",)

    updates: Input = Declared(description="Mapping with changed and new rows.")
    key_columns: Listed[ColumnName] = Declared(min_length=1, description="Columns that identify a row.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the updated state."""
        updates = workspace.frame(self.updates)
        keys = updates.select(*map(column, self.key_columns)).distinct().alias("updates")
        same = [f"{name_sql('state', name)} <=> {name_sql('updates', name)}" for name in self.key_columns]
        kept = frame.alias("state").join(keys, functions.expr(" AND ".join(same)), "left_anti")
        return updates.unionByName(conform(kept, fields_of(updates.schema)))


class UnitMapping(Mapping):
    """Returns the mapping `main` of its own mappings; `name:other` is another one of them.

    Names in them mean the unit's own mappings first, then those of the project.
    """

    mappings: NamedMap[Annotated[Mapping, KindOf("mapping")]] = Declared(
        description="The unit's own mappings; one is usually `main`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.mappings:
            raise ValueError("a unit needs at least one mapping in `mappings`")
        return self

    def references(self) -> Iterable[Reference]:
        """Return the references of the unit's mappings to anything outside of it."""
        for name, mapping in self.mappings.items():
            for each in mapping.references():
                if each.category != "mapping" or each.name.partition(":")[0] not in self.mappings:
                    yield Reference(each.category, each.name, ("mappings", name, *each.path))

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the unit's mappings, `main` before the others."""
        return tuple(sorted(self.mappings, key=lambda name: name != MAIN))

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the project's mappings that the unit's mappings read."""
        names = (name for mapping in self.mappings.values() for name in mapping.inputs(workspace))
        return tuple(dict.fromkeys(n for n in names if n.partition(":")[0] not in self.mappings))

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return every resource that one of the unit's mappings depends on."""
        inner = workspace.unit(self.mappings)
        return frozenset().union(*(inner.required(name) for name in self.mappings))

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the frame of `main`."""
        return self.transform_output(workspace, MAIN)

    def transform_output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the frame of one of the unit's mappings; what they report is reported of the unit."""
        inner = workspace.unit(self.mappings)
        frame = inner.frame(name)
        for note in (each for notes in inner.notes.values() for each in notes):
            self.note(workspace, note)
        return frame
