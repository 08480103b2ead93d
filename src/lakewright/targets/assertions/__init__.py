"""Assertions: conditions that `validate` and `verify` targets and tests check; one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "columns": "lakewright.targets.assertions.columns:ColumnsAssertion",
    "expression": "lakewright.targets.assertions.expression:ExpressionAssertion",
    "schema": "lakewright.targets.assertions.schema:SchemaAssertion",
    "sql": "lakewright.targets.assertions.sql:SqlAssertion",
    "uniqueKey": "lakewright.targets.assertions.unique_key:UniqueKeyAssertion",
}
"""Class of each kind; it is imported on first use."""

NOT_OFFERED = {"template": "Declare the assertion in full, with expressions where it differs."}
"""Kinds of Flowman that are not supported, with what to use instead."""
