"""Schemas: where declared columns come from, one module a kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "inline": "lakewright.schemas.inline:InlineSchema",
    "embedded": "lakewright.schemas.inline:InlineSchema",
    "mapping": "lakewright.schemas.mapping:MappingSchema",
    "relation": "lakewright.schemas.relation:RelationSchema",
}
"""Class of each kind, imported on first use."""

NOT_OFFERED = {
    "openApi": "Give the columns with kind: inline, or the schema as kind: json.",
    "swagger": "Give the columns with kind: inline, or the schema as kind: json.",
}
"""Kinds of Flowman's that aren't offered, with what to use instead."""
