"""Schemas, which give declared columns: one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "avro": "lakewright.schemas.avro:AvroSchema",
    "embedded": "lakewright.schemas.inline:InlineSchema",
    "inline": "lakewright.schemas.inline:InlineSchema",
    "json": "lakewright.schemas.json:JsonSchema",
    "mapping": "lakewright.schemas.mapping:MappingSchema",
    "relation": "lakewright.schemas.relation:RelationSchema",
    "spark": "lakewright.schemas.spark:SparkSchema",
    "union": "lakewright.schemas.union:UnionSchema",
}
"""The class of each kind, imported on first use."""

NOT_OFFERED = {
    "openApi": "Give the columns with kind: inline, or the schema as kind: json.",
    "swagger": "Give the columns with kind: inline, or the schema as kind: json.",
}
"""Kinds of Flowman that aren't supported, and what to use instead."""
