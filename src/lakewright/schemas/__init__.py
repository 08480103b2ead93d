"""Schemas, which give declared columns."""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS = {
    "avro": "lakewright.schemas.avro:AvroSchema",
    "embedded": "lakewright.schemas.declared_schema:InlineSchema",
    "inline": "lakewright.schemas.declared_schema:InlineSchema",
    "json": "lakewright.schemas.json:JsonSchema",
    "mapping": "lakewright.schemas.declared_schema:MappingSchema",
    "openApi": "lakewright.schemas.json:OpenApiSchema",
    "relation": "lakewright.schemas.declared_schema:RelationSchema",
    "spark": "lakewright.schemas.spark:SparkSchema",
    "swagger": "lakewright.schemas.json:OpenApiSchema",
    "union": "lakewright.schemas.declared_schema:UnionSchema",
}
"""The class of each kind, imported on first use."""
