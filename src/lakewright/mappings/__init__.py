"""Mappings: transformations that build a frame from relations and other mappings; one module per kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "aggregate": "lakewright.mappings.aggregate:AggregateMapping",
    "alias": "lakewright.mappings.alias:AliasMapping",
    "assemble": "lakewright.mappings.assemble:AssembleMapping",
    "case": "lakewright.mappings.case:CaseMapping",
    "cast": "lakewright.mappings.cast:CastMapping",
    "coalesce": "lakewright.mappings.partitions:CoalesceMapping",
    "conform": "lakewright.mappings.conform:ConformMapping",
    "deduplicate": "lakewright.mappings.deduplicate:DeduplicateMapping",
    "distinct": "lakewright.mappings.distinct:DistinctMapping",
    "drop": "lakewright.mappings.drop:DropMapping",
    "earliest": "lakewright.mappings.latest:EarliestMapping",
    "empty": "lakewright.mappings.empty:EmptyMapping",
    "explode": "lakewright.mappings.explode:ExplodeMapping",
    "extend": "lakewright.mappings.extend:ExtendMapping",
    "extractJson": "lakewright.mappings.json_text:ExtractJsonMapping",
    "filter": "lakewright.mappings.filter:FilterMapping",
    "flatten": "lakewright.mappings.flatten:FlattenMapping",
    "groupedAggregate": "lakewright.mappings.grouped_aggregate:GroupedAggregateMapping",
    "historize": "lakewright.mappings.historize:HistorizeMapping",
    "iterativeSql": "lakewright.mappings.iterative_sql:IterativeSqlMapping",
    "join": "lakewright.mappings.join:JoinMapping",
    "latest": "lakewright.mappings.latest:LatestMapping",
    "mock": "lakewright.mappings.mock:MockMapping",
    "null": "lakewright.mappings.empty:EmptyMapping",
    "observe": "lakewright.mappings.observe:ObserveMapping",
    "project": "lakewright.mappings.project:ProjectMapping",
    "provided": "lakewright.mappings.catalog:ProvidedMapping",
    "python": "lakewright.mappings.python:PythonMapping",
    "readHive": "lakewright.mappings.catalog:ReadHiveMapping",
    "rebalance": "lakewright.mappings.partitions:RebalanceMapping",
    "recursiveSql": "lakewright.mappings.iterative_sql:RecursiveSqlMapping",
    "relation": "lakewright.mappings.relation:RelationMapping",
    "repartition": "lakewright.mappings.partitions:RepartitionMapping",
    "schema": "lakewright.mappings.schema:SchemaMapping",
    "select": "lakewright.mappings.select:SelectMapping",
    "sort": "lakewright.mappings.sort:SortMapping",
    "sql": "lakewright.mappings.sql:SqlMapping",
    "stack": "lakewright.mappings.stack:StackMapping",
    "union": "lakewright.mappings.union:UnionMapping",
    "unit": "lakewright.mappings.unit:UnitMapping",
    "unpackJson": "lakewright.mappings.json_text:UnpackJsonMapping",
    "upsert": "lakewright.mappings.upsert:UpsertMapping",
    "values": "lakewright.mappings.values:ValuesMapping",
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
