"""Checks: what the documentation says must hold of rows and columns; one module a kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "expression": "lakewright.targets.checks.expression:ExpressionCheck",
    "foreignKey": "lakewright.targets.checks.foreign_key:ForeignKeyCheck",
    "length": "lakewright.targets.checks.length:LengthCheck",
    "notNull": "lakewright.targets.checks.not_null:NotNullCheck",
    "primaryKey": "lakewright.targets.checks.primary_key:PrimaryKeyCheck",
    "range": "lakewright.targets.checks.range:RangeCheck",
    "sql": "lakewright.targets.checks.sql:SqlCheck",
    "unique": "lakewright.targets.checks.unique:UniqueCheck",
    "values": "lakewright.targets.checks.values:ValuesCheck",
}
"""Class of each kind, imported on first use."""

NOT_OFFERED: dict[str, str] = {}
"""Kinds of Flowman's that aren't offered, with what to use instead."""
