"""Changes to a Delta table that is there: column by column, or by an empty table in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.table import set_properties
from lakewright.spec.models.fields import Field
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake

__all__ = ["Step", "alter_table", "replace_table"]


@dataclass(frozen=True, slots=True)
class Step:
    """One difference of a table and what to do about it.

    Attributes:
        description: What a migration does, for people.
        sql: What follows `ALTER TABLE …`, or in a database the whole statement; None where none can do it.
        loses: What would be lost, or None.
        needs_mapping: Whether the table must know its columns by id first (Delta's column mapping).
        widens: Whether the table must allow wider types first.
    """

    description: str
    sql: str | None
    loses: str | None = None
    needs_mapping: bool = False
    widens: bool = False


def alter_table(lake: Lake, address: Address, steps: Sequence[Step]) -> None:
    """Do the steps that have SQL, each in a commit of its own, once the table allows them."""
    session = lake.isolated()
    session.conf.set("spark.sql.variable.substitute", "false")
    needed = {}
    if any(step.needs_mapping for step in steps):
        needed["delta.columnMapping.mode"] = "name"
    if any(step.widens for step in steps):
        needed["delta.enableTypeWidening"] = "true"
    if needed:
        set_properties(session, address, needed)
    for step in steps:
        if step.sql is not None:
            session.sql(f"ALTER TABLE {address.sql} {step.sql}")


def replace_table(
    lake: Lake,
    address: Address,
    columns: Iterable[Field],
    *,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
) -> None:
    """Put an empty table in the place of the present one, in one commit; its history stays."""
    from delta.tables import DeltaTable

    builder = DeltaTable.replace(lake.isolated())
    if address.location is not None:
        builder = builder.location(address.location)
    else:
        builder = builder.tableName(address.sql)
    for field in columns:
        builder = builder.addColumn(
            field.name, field.type.ddl, nullable=field.nullable, comment=field.description
        )
    if partition_columns:
        builder = builder.partitionedBy(*partition_columns)
    for key, value in (properties or {}).items():
        builder = builder.property(key, value)
    if comment:
        builder = builder.comment(comment)
    builder.execute()
