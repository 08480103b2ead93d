"""Differences between a database table and its declaration, and the statements that remove them.

Source: the lifecycle's rules, "CREATE and migration".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright.connections.database import DatabaseTable, Index, TableName
from lakewright.connections.dialect import Dialect
from lakewright.lake.table import MigrationStep
from lakewright.relations.migration import MigrationPolicy, Shape, find_former
from lakewright.schema.fits import fits
from lakewright.schema.types import Chars, Decimal, Scalar, Type
from lakewright.spec.models.fields import Field

__all__ = ["find_table_steps", "has_place"]


def find_table_steps(
    dialect: Dialect, table: TableName, present: DatabaseTable, wanted: DatabaseTable, policy: MigrationPolicy
) -> tuple[MigrationStep, ...]:
    """Return the differences as steps, in an order in which they can be executed."""
    shape = Shape(present.columns)
    is_strict = policy is MigrationPolicy.STRICT
    # An undeclared key may have been created on purpose; only a strict policy drops it.
    key = wanted.primary_key or (() if is_strict else present.primary_key)
    has_other_key = sorted(_lower(key)) != sorted(_lower(present.primary_key))
    steps = _drop_key(dialect, table, present) if has_other_key else []
    taken = {field.name.lower() for field in wanted.columns}
    for field in wanted.columns:
        former = find_former(field, shape)
        if former is not None:
            taken.add(former.name.lower())
            renaming = dialect.rename_column(table, former.name, field.name)
            steps.append(MigrationStep(f"rename column {former.name} to {field.name}", renaming))
    if is_strict:
        steps += [_drop(dialect, table, each) for each in present.columns if each.name.lower() not in taken]
    for field in wanted.columns:
        actual = shape.column(field.name) or find_former(field, shape)
        if actual is None:
            steps.append(_add(dialect, table, field))
        else:
            is_in_key = field.name.lower() in _lower(key)
            bound = field.model_copy(update={"nullable": False}) if is_in_key else field
            steps += _alter(dialect, table, actual, bound, is_strict=is_strict)
    steps += _add_key(dialect, table, key) if has_other_key else []
    return (*steps, *_indexes(dialect, table, present, wanted.indexes or (), is_strict=is_strict))


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


def _drop(dialect: Dialect, table: TableName, field: Field) -> MigrationStep:
    lost = f"column {field.name}"
    return MigrationStep(f"drop column {field.name}", dialect.drop_column(table, field.name), loses=lost)


def _add(dialect: Dialect, table: TableName, field: Field) -> MigrationStep:
    not_null = "" if field.nullable else " NOT NULL"
    return MigrationStep(
        f"add column {field.name} {field.type.ddl}{not_null}", dialect.add_column(table, field)
    )


def _alter(
    dialect: Dialect, table: TableName, actual: Field, field: Field, *, is_strict: bool
) -> Iterator[MigrationStep]:
    stored = dialect.stored(field.type)
    if actual.type != stored and (is_strict or not has_place(stored, actual.type)):
        sql = dialect.widen_column(table, field) if _is_alterable(actual.type, stored) else None
        yield MigrationStep(f"change column {field.name} from {actual.type.ddl} to {stored.ddl}", sql)
    if field.nullable and not actual.nullable:
        yield MigrationStep(f"allow nulls in column {field.name}", dialect.set_nullable(table, field))
    elif is_strict and actual.nullable and not field.nullable:
        yield MigrationStep(f"forbid nulls in column {field.name}", dialect.set_nullable(table, field))
    if is_strict and (actual.description or "") != (field.description or ""):
        yield MigrationStep(
            f"change the comment of column {field.name}", dialect.comment_column(table, field)
        )


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
