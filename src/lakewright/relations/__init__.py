"""Relations: sources and destinations of data; one module per kind."""

from __future__ import annotations

__all__ = ["KINDS", "NOT_OFFERED"]

KINDS = {
    "const": "lakewright.relations.values:ValuesRelation",
    "delta": "lakewright.relations.delta:DeltaRelation",
    "deltaFile": "lakewright.relations.delta:DeltaRelation",
    "deltaTable": "lakewright.relations.delta:DeltaRelation",
    "empty": "lakewright.relations.empty:EmptyRelation",
    "entity": "lakewright.relations.entity:EntityRelation",
    "file": "lakewright.relations.file:FileRelation",
    "generic": "lakewright.relations.generic:GenericRelation",
    "hiveTable": "lakewright.relations.table:TableRelation",
    "hiveView": "lakewright.relations.view:ViewRelation",
    "jdbcQuery": "lakewright.relations.jdbc_query:JdbcQueryRelation",
    "jdbcTable": "lakewright.relations.jdbc_table:JdbcTableRelation",
    "jdbcView": "lakewright.relations.jdbc_view:JdbcViewRelation",
    "mock": "lakewright.relations.mock:MockRelation",
    "null": "lakewright.relations.empty:EmptyRelation",
    "provided": "lakewright.relations.provided:ProvidedRelation",
    "table": "lakewright.relations.table:TableRelation",
    "values": "lakewright.relations.values:ValuesRelation",
    "view": "lakewright.relations.view:ViewRelation",
}
"""The class of each kind; imported on first use."""

NOT_OFFERED = {
    "hiveQuery": "Use a view relation, or a sql mapping.",
    "hiveUnionTable": "Use a delta relation; its table accepts new columns.",
    "kafka": "Streams aren't offered.",
    "local": "Use a file relation.",
    "sqlserver": "Use a jdbcTable relation.",
}
"""Flowman kinds that are not supported, and what to use instead."""
