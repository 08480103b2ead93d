"""Checks: whether rows and columns are as stated, and how that is reported.

Documentation blocks declare checks of a relation, mapping or target. `validate` and `verify` targets and
tests declare assertions, which name the mappings that they are about.
"""

from __future__ import annotations

__all__ = ["ASSERTIONS", "CHECKS"]

ASSERTIONS = {
    "columns": "lakewright.checks.columns:ColumnsAssertion",
    "expression": "lakewright.checks.conditions:ExpressionAssertion",
    "schema": "lakewright.checks.columns:SchemaAssertion",
    "sql": "lakewright.checks.sql:SqlAssertion",
    "uniqueKey": "lakewright.checks.keys:UniqueKeyAssertion",
}
"""The class of each kind of assertion; imported on first use."""

CHECKS = {
    "expression": "lakewright.checks.conditions:ExpressionCheck",
    "foreignKey": "lakewright.checks.keys:ForeignKeyCheck",
    "length": "lakewright.checks.conditions:LengthCheck",
    "notNull": "lakewright.checks.conditions:NotNullCheck",
    "primaryKey": "lakewright.checks.keys:PrimaryKeyCheck",
    "range": "lakewright.checks.conditions:RangeCheck",
    "sql": "lakewright.checks.sql:SqlCheck",
    "unique": "lakewright.checks.keys:UniqueCheck",
    "values": "lakewright.checks.conditions:ValuesCheck",
}
"""The class of each kind of check; imported on first use."""
