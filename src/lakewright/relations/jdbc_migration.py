"""Differences between a database table and its declaration, and the statements that remove them.

Source: the lifecycle's rules, "CREATE and migration".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from lakewright.connections.database import DatabaseTable, Index, TableName
from lakewright.connections.dialect import Dialect
from lakewright.lake.table import MigrationStep
from lakewright.relations.migration import MigrationPolicy, Shape, Statements, find_steps
from lakewright.schema.fits import fits
from lakewright.schema.types import Chars, Decimal, Scalar, Type
from lakewright.spec.models.fields import Field

__all__ = ["find_table_steps", "has_place"]


def find_table_steps(
    dialect: Dialect, table: TableName, present: DatabaseTable, wanted: DatabaseTable, policy: MigrationPolicy
) -> tuple[MigrationStep, ...]:
    """Return the differences as steps, in an order in which they can be executed."""
    is_strict = policy is MigrationPolicy.STRICT
    # An undeclared key may have been created on purpose; only a strict policy drops it.
    key = wanted.primary_key or (() if is_strict else present.primary_key)
    has_other_key = sorted(_lower(key)) != sorted(_lower(present.primary_key))
    columns = (
        field.model_copy(update={"nullable": field.nullable and field.name.lower() not in _lower(key)})
        for field in wanted.columns
    )
    statements = _statements(dialect, table)
    return (
        *(_drop_key(dialect, table, present) if has_other_key else ()),
        *find_steps(Shape(present.columns), Shape(tuple(columns)), policy, statements),
        *(_add_key(dialect, table, key) if has_other_key else ()),
        *_indexes(dialect, table, present, wanted.indexes or (), is_strict=is_strict),
    )


def _statements(dialect: Dialect, table: TableName) -> Statements:
    def retype(actual: Field, field: Field) -> str | None:
        is_possible = _is_alterable(actual.type, dialect.stored(field.type))
        return dialect.widen_column(table, field) if is_possible else None

    return Statements(
        rename=partial(dialect.rename_column, table),
        drop=partial(dialect.drop_column, table),
        add=partial(dialect.add_column, table),
        retype=retype,
        set_nullable=partial(dialect.set_nullable, table),
        comment=partial(dialect.comment_column, table),
        stored=dialect.stored,
        holds=has_place,
    )


def has_place(narrow: Type, wide: Type) -> bool:
    """Return whether the second type can store every value of the first, including the lengths of text.

    Example:
        >>> has_place(Chars(3), Chars(5)), has_place(Chars(5), Chars(3))
        (True, False)
    """
    if isinstance(wide, Chars):
        is_padded = wide.is_fixed and narrow != wide
        return isinstance(narrow, Chars) and narrow.length <= wide.length and not is_padded
    return fits(narrow, wide)


def _is_alterable(actual: Type, wanted: Type) -> bool:
    """Return whether a database can convert every value: to a type with place for it, or to text."""
    is_plain = isinstance(actual, (Chars, Decimal)) or (
        isinstance(actual, Scalar) and actual != Scalar("binary")
    )
    return has_place(actual, wanted) or (wanted == Scalar("string") and is_plain)


def _drop_key(dialect: Dialect, table: TableName, present: DatabaseTable) -> list[MigrationStep]:
    dropped = dialect.replace_key(table, present.key_name, ()) if present.primary_key else None
    return [MigrationStep("drop the primary key", "; ".join(dropped))] if dropped else []


def _add_key(dialect: Dialect, table: TableName, columns: Sequence[str]) -> list[MigrationStep]:
    added = dialect.replace_key(table, None, columns)
    return [MigrationStep(f"set the primary key to {', '.join(columns)}", "; ".join(added))] if added else []


def _indexes(
    dialect: Dialect,
    table: TableName,
    present: DatabaseTable,
    wanted: Sequence[Index],
    *,
    is_strict: bool,
) -> Iterator[MigrationStep]:
    if present.indexes is None:
        return
    known = {index.name.lower(): index for index in present.indexes}
    names = set(_lower([index.name for index in wanted]))
    for index in present.indexes:
        if is_strict and index.name.lower() not in names and not index.is_constraint:
            yield MigrationStep(f"drop index {index.name}", dialect.drop_index(table, index.name))
    for index in wanted:
        former = known.get(index.name.lower())
        if former is None:
            yield MigrationStep(f"create index {index.name}", dialect.create_index(table, index))
        elif not former.same(index):
            drop, create = dialect.drop_index(table, former.name), dialect.create_index(table, index)
            yield MigrationStep(f"recreate index {index.name}", f"{drop}; {create}")


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]
