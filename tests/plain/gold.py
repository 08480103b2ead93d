"""Builds of Delta relations from SQL over tables, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, QueryBuilder
from tests.plain.session import PlainSession
from tests.plain.tables import Action, PlainTable, column

from lakewright.errors import TargetError
from lakewright.lake.commit import METADATA, signature
from lakewright.mappings.sources import RelationMapping
from lakewright.mappings.sql import SqlMapping
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.relation import OutputMode, WriteSummary
from lakewright.targets.writing import RowTarget
from lakewright.workspace.query import mapping_names

if TYPE_CHECKING:
    from lakewright.lake.partition import Partition
    from lakewright.targets.context import Context
    from lakewright.workspace.workspace import Workspace

# It brings no types.
pa: Any = import_module("pyarrow")

_outgoing, _write = RowTarget.outgoing, DeltaRelation._write

KINDS = {"int64": "long", "int32": "integer", "bool": "boolean", "double": "double", "date32[day]": "date"}
"""Delta's names of types of Arrow; others are texts."""


def outgoing(target: RowTarget, context: Context) -> Any:
    """Return the rows that a target writes; without Spark as a table of Arrow."""
    if not isinstance(context.workspace.spark, PlainSession):
        return _outgoing(target, context)
    return _rows(context.workspace, target.mapping_read() or "")


def write(
    relation: DeltaRelation,
    workspace: Workspace,
    frame: Any,
    options: Mapping[str, str],
    *,
    partition: Partition,
    mode: OutputMode,
) -> WriteSummary:
    """Write rows to a relation; without Spark those of a table of Arrow."""
    session: Any = workspace.spark
    if not isinstance(session, PlainSession):
        return _write(relation, workspace, frame, options, partition=partition, mode=mode)
    with relation._committing(workspace):
        table = PlainTable(Path(str(relation.address(workspace).location)))
        fields: list[Action] = [
            column(each.name, KINDS.get(str(each.type), "string")) for each in frame.schema
        ]
        rows = frame.to_pylist()
        carrying = _carrying(options, partition if table.exists and mode is OutputMode.OVERWRITE else {})
        if table.exists and mode is OutputMode.OVERWRITE:
            version = table.replace(carrying, rows, fields, partition=partition)
        elif mode in (OutputMode.APPEND, OutputMode.OVERWRITE):
            names = [each.name for each in relation.partitions]
            version = table.insert(carrying, rows, fields, partitions=names)
        else:
            raise NotImplementedError(mode)
    return WriteSummary(len(rows), version)


def _carrying(options: Mapping[str, str], partition: Partition) -> PlainSession:
    """Return a session whose commits carry what a writer's options say, or else the signature."""
    session = PlainSession()
    for name in ("txnAppId", "txnVersion"):
        if name in options:
            session.conf.set(f"spark.databricks.delta.write.{name}", options[name])
    session.conf.set(METADATA, options.get("userMetadata") or signature(partition or None))
    return session


def _rows(workspace: Workspace, name: str) -> Any:
    """Return the rows of a mapping: of a table, or of a query over tables.

    Raises:
        TargetError: The query can't be run.
    """
    found: Any = workspace.mapping(name)
    if not isinstance(found, SqlMapping):
        raise NotImplementedError(found.kind)
    builder, query = QueryBuilder(), found.query(workspace)
    for each in mapping_names(query):
        read: Any = workspace.mapping(each)
        if not isinstance(read, RelationMapping):
            raise NotImplementedError(read.kind)
        source: Any = read.source(workspace)
        builder = builder.register(each, DeltaTable(source.address(workspace).location))
    try:
        rows = pa.table(builder.execute(query).read_all())
    except Exception as error:
        raise TargetError(f"mapping {name!r}: {error}") from error
    kinds = [(each.name, pa.string() if "string" in str(each.type) else each.type) for each in rows.schema]
    return rows.cast(pa.schema(kinds))
