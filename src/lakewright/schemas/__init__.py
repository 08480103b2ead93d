"""Schemas, which give declared columns: one module for each kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "avro": "lakewright.schemas.avro:AvroSchema",
    "embedded": "lakewright.schemas.inline:InlineSchema",
    "inline": "lakewright.schemas.inline:InlineSchema",
    "json": "lakewright.schemas.json:JsonSchema",
    "mapping": "lakewright.schemas.mapping:MappingSchema",
    "openApi": "lakewright.schemas.open_api:OpenApiSchema",
    "relation": "lakewright.schemas.relation:RelationSchema",
    "spark": "lakewright.schemas.spark:SparkSchema",
    "swagger": "lakewright.schemas.open_api:OpenApiSchema",
    "union": "lakewright.schemas.union:UnionSchema",
}
"""The class of each kind, imported on first use."""

NOT_OFFERED: dict[str, str] = {}
"""Kinds of Flowman that aren't supported, and what to use instead: none."""
