"""Measures: the numbers that a `measure` target takes; one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {"sql": "lakewright.targets.measures.sql:SqlMeasure"}
"""Class of each kind; it is imported on first use."""

NOT_OFFERED = {"template": "Declare the measure in full, with expressions where it differs."}
"""Kinds of Flowman that are not supported, with what to use instead."""
