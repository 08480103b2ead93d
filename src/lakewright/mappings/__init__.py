"""Mappings: transformations that build a frame from relations and other mappings; one module per kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "aggregate": "lakewright.mappings.aggregate:AggregateMapping",
    "alias": "lakewright.mappings.alias:AliasMapping",
    "cast": "lakewright.mappings.cast:CastMapping",
    "conform": "lakewright.mappings.conform:ConformMapping",
    "deduplicate": "lakewright.mappings.deduplicate:DeduplicateMapping",
    "distinct": "lakewright.mappings.distinct:DistinctMapping",
    "drop": "lakewright.mappings.drop:DropMapping",
    "earliest": "lakewright.mappings.latest:EarliestMapping",
    "explode": "lakewright.mappings.explode:ExplodeMapping",
    "extend": "lakewright.mappings.extend:ExtendMapping",
    "filter": "lakewright.mappings.filter:FilterMapping",
    "flatten": "lakewright.mappings.flatten:FlattenMapping",
    "historize": "lakewright.mappings.historize:HistorizeMapping",
    "join": "lakewright.mappings.join:JoinMapping",
    "latest": "lakewright.mappings.latest:LatestMapping",
    "mock": "lakewright.mappings.mock:MockMapping",
    "project": "lakewright.mappings.project:ProjectMapping",
    "python": "lakewright.mappings.python:PythonMapping",
    "relation": "lakewright.mappings.relation:RelationMapping",
    "schema": "lakewright.mappings.schema:SchemaMapping",
    "select": "lakewright.mappings.select:SelectMapping",
    "sort": "lakewright.mappings.sort:SortMapping",
    "sql": "lakewright.mappings.sql:SqlMapping",
    "stack": "lakewright.mappings.stack:StackMapping",
    "union": "lakewright.mappings.union:UnionMapping",
    "upsert": "lakewright.mappings.upsert:UpsertMapping",
    "values": "lakewright.mappings.values:ValuesMapping",
}
"""The class of each kind; imported on first use."""

NOT_OFFERED = {
    "assemble": "Use a select mapping with struct(…).",
    "case": "Use a sql mapping, or a condition with expressions.",
    "coalesce": "Give the target a parallelism.",
    "empty": "Use a values mapping without records.",
    "groupedAggregate": "Use a sql mapping with GROUPING SETS.",
    "iterativeSql": "Use a sql mapping with WITH RECURSIVE.",
    "jsonExtract": "Use a select mapping with from_json.",
    "jsonUnpack": "Use a select mapping with from_json.",
    "null": "Use a values mapping without records.",
    "observe": "Use a measure target.",
    "readHive": "Use a relation mapping with a relation of kind: table.",
    "readStream": "Streams aren't offered.",
    "rebalance": "Give the target rebalance: true and a parallelism.",
    "recursiveSql": "Use a sql mapping with WITH RECURSIVE.",
    "repartition": "Give the target rebalance: true and a parallelism.",
    "stream": "Streams aren't offered.",
    "unit": "Declare its mappings directly in the project.",
}
"""Flowman kinds that are not supported, and what to use instead."""
