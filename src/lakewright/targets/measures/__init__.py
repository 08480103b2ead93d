"""Measures: what a `measure` target takes; one module a kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {"sql": "lakewright.targets.measures.sql:SqlMeasure"}
"""Class of each kind, imported on first use."""

NOT_OFFERED = {"template": "Write the measure out, with expressions where it differs."}
"""Kinds of Flowman's that aren't offered, with what to use instead."""
