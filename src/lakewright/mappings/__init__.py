"""Mappings: what makes a frame out of relations and other mappings, one module a kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "aggregate": "lakewright.mappings.aggregate:AggregateMapping",
    "alias": "lakewright.mappings.alias:AliasMapping",
    "cast": "lakewright.mappings.cast:CastMapping",
    "deduplicate": "lakewright.mappings.deduplicate:DeduplicateMapping",
    "distinct": "lakewright.mappings.distinct:DistinctMapping",
    "drop": "lakewright.mappings.drop:DropMapping",
    "extend": "lakewright.mappings.extend:ExtendMapping",
    "filter": "lakewright.mappings.filter:FilterMapping",
    "join": "lakewright.mappings.join:JoinMapping",
    "mock": "lakewright.mappings.mock:MockMapping",
    "project": "lakewright.mappings.project:ProjectMapping",
    "relation": "lakewright.mappings.relation:RelationMapping",
    "select": "lakewright.mappings.select:SelectMapping",
    "sort": "lakewright.mappings.sort:SortMapping",
    "sql": "lakewright.mappings.sql:SqlMapping",
    "union": "lakewright.mappings.union:UnionMapping",
    "values": "lakewright.mappings.values:ValuesMapping",
}
"""Class of each kind, imported on first use."""

NOT_OFFERED: dict[str, str] = {}
"""Kinds of Flowman's that aren't offered, with what to use instead."""
