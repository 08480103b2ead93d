"""Checks: conditions on rows and columns that the documentation shows; one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "expression": "lakewright.documentation.checks.expression:ExpressionCheck",
    "foreignKey": "lakewright.documentation.checks.foreign_key:ForeignKeyCheck",
    "length": "lakewright.documentation.checks.length:LengthCheck",
    "notNull": "lakewright.documentation.checks.not_null:NotNullCheck",
    "primaryKey": "lakewright.documentation.checks.primary_key:PrimaryKeyCheck",
    "range": "lakewright.documentation.checks.range:RangeCheck",
    "sql": "lakewright.documentation.checks.sql:SqlCheck",
    "unique": "lakewright.documentation.checks.unique:UniqueCheck",
    "values": "lakewright.documentation.checks.values:ValuesCheck",
}
"""Class of each kind; it is imported on first use."""

NOT_OFFERED: dict[str, str] = {}
"""Kinds of Flowman that are not supported, with what to use instead."""
