"""Mappings: transformations that build a frame from relations and other mappings; kinds by what they do."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "aggregate": "lakewright.mappings.rows:AggregateMapping",
    "alias": "lakewright.mappings.rows:AliasMapping",
    "assemble": "lakewright.mappings.nested:AssembleMapping",
    "case": "lakewright.mappings.combine:CaseMapping",
    "cast": "lakewright.mappings.columns:CastMapping",
    "coalesce": "lakewright.mappings.rows:CoalesceMapping",
    "conform": "lakewright.mappings.nested:ConformMapping",
    "deduplicate": "lakewright.mappings.rows:DeduplicateMapping",
    "distinct": "lakewright.mappings.rows:DistinctMapping",
    "drop": "lakewright.mappings.columns:DropMapping",
    "earliest": "lakewright.mappings.rows:EarliestMapping",
    "empty": "lakewright.mappings.sources:EmptyMapping",
    "explode": "lakewright.mappings.nested:ExplodeMapping",
    "extend": "lakewright.mappings.columns:ExtendMapping",
    "extractJson": "lakewright.mappings.json_text:ExtractJsonMapping",
    "filter": "lakewright.mappings.rows:FilterMapping",
    "flatten": "lakewright.mappings.nested:FlattenMapping",
    "groupedAggregate": "lakewright.mappings.rows:GroupedAggregateMapping",
    "historize": "lakewright.mappings.rows:HistorizeMapping",
    "iterativeSql": "lakewright.mappings.sql:IterativeSqlMapping",
    "join": "lakewright.mappings.combine:JoinMapping",
    "latest": "lakewright.mappings.rows:LatestMapping",
    "mock": "lakewright.mappings.sources:MockMapping",
    "null": "lakewright.mappings.sources:EmptyMapping",
    "observe": "lakewright.mappings.rows:ObserveMapping",
    "project": "lakewright.mappings.columns:ProjectMapping",
    "provided": "lakewright.mappings.sources:ProvidedMapping",
    "python": "lakewright.mappings.python:PythonMapping",
    "readHive": "lakewright.mappings.sources:ProvidedMapping",
    "rebalance": "lakewright.mappings.rows:RebalanceMapping",
    "recursiveSql": "lakewright.mappings.sql:RecursiveSqlMapping",
    "relation": "lakewright.mappings.sources:RelationMapping",
    "repartition": "lakewright.mappings.rows:RepartitionMapping",
    "schema": "lakewright.mappings.columns:SchemaMapping",
    "select": "lakewright.mappings.columns:SelectMapping",
    "sort": "lakewright.mappings.rows:SortMapping",
    "sql": "lakewright.mappings.sql:SqlMapping",
    "stack": "lakewright.mappings.nested:StackMapping",
    "union": "lakewright.mappings.combine:UnionMapping",
    "unit": "lakewright.mappings.combine:UnitMapping",
    "unpackJson": "lakewright.mappings.json_text:UnpackJsonMapping",
    "upsert": "lakewright.mappings.combine:UpsertMapping",
    "values": "lakewright.mappings.sources:ValuesMapping",
}
"""The class of each kind; imported on first use."""

NOT_OFFERED = {
    "jsonExtract": "Its kind is extractJson.",
    "jsonUnpack": "Its kind is unpackJson.",
    "rank": "Use kind: latest or kind: earliest.",
    "readStream": "Streams aren't offered.",
    "stream": "Streams aren't offered.",
    "transitiveChildren": "Use kind: recursiveSql with a join of the parents and their children.",
}
"""Flowman kinds that are not supported, and what to use instead."""
