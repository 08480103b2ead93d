"""Assertions: what `validate` and `verify` targets, and tests, check; one module a kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "columns": "lakewright.targets.assertions.columns:ColumnsAssertion",
    "expression": "lakewright.targets.assertions.expression:ExpressionAssertion",
    "schema": "lakewright.targets.assertions.schema:SchemaAssertion",
    "sql": "lakewright.targets.assertions.sql:SqlAssertion",
    "uniqueKey": "lakewright.targets.assertions.unique_key:UniqueKeyAssertion",
}
"""Class of each kind, imported on first use."""

NOT_OFFERED = {"template": "Write the assertion out, with expressions where it differs."}
"""Kinds of Flowman's that aren't offered, with what to use instead."""
