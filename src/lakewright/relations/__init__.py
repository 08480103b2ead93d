"""Relations: sources and destinations of data; one module per kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "const": "lakewright.relations.values:ValuesRelation",
    "delta": "lakewright.relations.delta:DeltaRelation",
    "deltaFile": "lakewright.relations.delta:DeltaRelation",
    "deltaTable": "lakewright.relations.delta:DeltaRelation",
    "empty": "lakewright.relations.values:EmptyRelation",
    "entity": "lakewright.relations.entity:EntityRelation",
    "file": "lakewright.relations.file:FileRelation",
    "generic": "lakewright.relations.generic:GenericRelation",
    "hiveQuery": "lakewright.relations.catalog:HiveQueryRelation",
    "hiveTable": "lakewright.relations.catalog:TableRelation",
    "hiveUnionTable": "lakewright.relations.catalog:UnionTableRelation",
    "hiveView": "lakewright.relations.catalog:ViewRelation",
    "jdbcQuery": "lakewright.relations.jdbc:JdbcQueryRelation",
    "jdbcTable": "lakewright.relations.jdbc:JdbcTableRelation",
    "jdbcView": "lakewright.relations.jdbc:JdbcViewRelation",
    "mock": "lakewright.relations.values:MockRelation",
    "null": "lakewright.relations.values:EmptyRelation",
    "provided": "lakewright.relations.catalog:ProvidedRelation",
    "sqlserver": "lakewright.relations.jdbc:SqlServerRelation",
    "table": "lakewright.relations.catalog:TableRelation",
    "values": "lakewright.relations.values:ValuesRelation",
    "view": "lakewright.relations.catalog:ViewRelation",
}
"""The class of each kind; imported on first use."""

NOT_OFFERED = {
    "hbase": "Read it with a generic relation and HBase's Spark connector, or export its rows to files.",
    "impala": "Use a hiveTable relation; run INVALIDATE METADATA with a jdbcCommand target.",
    "kafka": "Streams aren't offered.",
    "local": "Use a file relation.",
    "stream": "Streams aren't offered.",
}
"""Flowman kinds that are not supported, and what to use instead."""
