"""Query the lake with SQL; the project's entities, relations and mappings are the tables."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.frames import created_frame
from lakewright.lake.spark_errors import analysis_error, first_line, query_failure, spark_errors
from lakewright.relations.entity import observe_silver, read_silver
from lakewright.schema.sql import name_sql
from lakewright.spec.project import Project
from lakewright.spec.suggestions import nearest
from lakewright.transform.row_values import json_sql, parse_values
from lakewright.usecases.read_frames import instant_of
from lakewright.workspace.lake_tables import (
    Layer,
    TableName,
    find_tables,
    rewritten,
    shadowed_mappings,
    tables_of,
)
from lakewright.workspace.readable import read_relation
from lakewright.workspace.sql_tables import table_names
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["Answer", "check_query", "query_frame", "query_lake"]

log = logging.getLogger(__name__)

_SHOW_TABLES = re.compile(
    r"\s*SHOW\s+TABLES(?:\s+(?:FROM|IN)\s+`?(?P<layer>\w+)`?)?(?:\s+(?:LIKE\s+)?'(?P<pattern>[^']*)')?[\s;]*",
    re.IGNORECASE,
)
_DESCRIBE = re.compile(
    r"\s*DESC(?:RIBE)?\s+(?!(?:QUERY|FUNCTION|DATABASE|SCHEMA|NAMESPACE|CATALOG|SELECT|WITH|FROM)\b)"
    r"(?:TABLE\s+)?(?:(?:EXTENDED|FORMATTED)\s+)?",
    re.IGNORECASE,
)
_STATEMENT = re.compile(r"\s*(?:DESC|DESCRIBE|SHOW)\b", re.IGNORECASE)
"""Statements that only show something; all others must be queries."""


_NO_QUERY = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?P<word>ADD|ALTER|ANALYZE|BEGIN|CACHE|CALL|CLEAR|COMMENT|COPY|CREATE|DECLARE|"
    r"DELETE|DROP|EXECUTE|EXPLAIN|GRANT|INSERT|LOAD|MERGE|MSCK|OPTIMIZE|REFRESH|REPAIR|REPLACE|RESET|RESTORE|"
    r"REVOKE|SET|TRUNCATE|UNCACHE|UPDATE|USE|VACUUM)\b",
    re.IGNORECASE | re.DOTALL,
)
"""The words of statements that are no queries."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query.

    Attributes:
        is_cut: Whether there are more rows.
        notes: Which definition a name means where several have it.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    is_cut: bool
    notes: tuple[str, ...] = ()


def query_lake(app: App, query: str, *, limit: int, as_of: object = None) -> Answer:
    """Return the first rows of a query in Spark's SQL; instants are ISO 8601 text in UTC.

    Structs and maps are dicts; a time inside a value is text, too.

    Accepted are queries, DESCRIBE and SHOW: no DROP, no INSERT. `SHOW TABLES` lists the project's tables and
    needs no Spark.

    Args:
        app: The project.
        query: The query.
        limit: The largest number of rows.
        as_of: A time at which tables are read; see `read_silver`. What keeps no past is read as it is now,
            and named in the notes.

    Raises:
        TargetError: An entity or a relation has no table yet.
        UsageError: Spark rejects the query, a name is that of an entity and of a relation, or `as_of` is no
            time.
        TargetError: The log of a table doesn't reach back so far.
    """
    check_query(query)
    at = None if as_of is None else instant_of(app, as_of)
    query = query.rstrip().rstrip(";")
    shown = _shown_tables(app.project, query)
    if shown is not None:
        return Answer(("layer", "name"), shown[:limit], is_cut=len(shown) > limit)
    tables = find_tables(app.project, _names_only(query))
    notes = tuple(shadowed_mappings(app.project, _names_only(query)))
    with (
        app.lake.looking_back(at) as past,
        _rejections(app, query),
        _views(app.workspace, tables) as session,
    ):
        frame = _frame(session, rewritten(query, tables)).limit(limit + 1)
        rows = _rows(frame)
        notes += () if past is None else tuple(dict.fromkeys(past.notes))
        notes += tuple(app.workspace.notes.take())
        return Answer(frame.columns, rows[:limit], is_cut=len(rows) > limit, notes=notes)


def query_frame(app: App, query: str, *, as_of: object = None) -> DataFrame:
    """Return the rows of a query in Spark's SQL as a frame; they are computed when it is used.

    Args:
        app: The project.
        query: The query.
        as_of: A time at which tables are read; see `query_lake`.

    Raises:
        TargetError: An entity or a relation has no table yet.
        UsageError: Spark rejects the query, or a name is that of an entity and of a relation.
    """
    check_query(query)
    query = query.rstrip().rstrip(";")
    shown = _shown_tables(app.project, query)
    if shown is not None:
        return created_frame(app.lake.new_session(), shown, "layer string, name string")
    tables = find_tables(app.project, _names_only(query))
    at = None if as_of is None else instant_of(app, as_of)
    with (
        app.lake.looking_back(at) as past,
        _rejections(app, query),
        _views(app.workspace, tables) as session,
    ):
        for note in (*(() if past is None else past.notes), *app.workspace.notes.take()):
            log.warning("%s", note)
        return _frame(session, rewritten(query, tables))


def check_query(query: str) -> None:
    """Check that a text is a query, and no statement that writes or sets something.

    Raises:
        UsageError: It is empty, or such a statement.
    """
    if not query.strip(" \t\r\n;"):
        raise UsageError("the query is empty", remedy="Write one, such as SELECT * FROM silver.orders.")
    if found := _NO_QUERY.match(query):
        raise UsageError(
            f"a query only reads, and {found['word'].upper()} does not begin one",
            remedy="Begin with SELECT, WITH, FROM, VALUES, TABLE, SHOW or DESCRIBE. Tables are written by "
            "the targets and entities that the project declares.",
        )


@contextmanager
def _rejections(app: App, query: str) -> Iterator[None]:
    """Raise errors of Spark in the block as errors of the query, or of the rows that it reads."""
    try:
        yield
    except analysis_error() as error:
        is_table = "TABLE_OR_VIEW_NOT_FOUND" in str(error)
        raise UsageError(
            f"Spark rejects the query: {first_line(error)}", remedy=_remedy(app, query) if is_table else None
        ) from error
    except spark_errors() as error:
        raise query_failure(error, "while the query ran") or error from error


def _shown_tables(project: Project, query: str) -> list[tuple[str, str]] | None:
    """Return the rows of SHOW TABLES; None for other statements, and for the databases of the catalog."""
    match = _SHOW_TABLES.fullmatch(query)
    layer = match["layer"].lower() if match is not None and match["layer"] else None
    if match is None or layer not in {None, *Layer}:
        return None
    pattern = (match["pattern"] or "*").lower().replace("%", "*")
    layers = tuple(Layer) if layer is None else (Layer(layer),)
    return [
        (table.layer.value, table.name)
        for table in tables_of(project, layers)
        if any(fnmatchcase(table.name.lower(), each.strip()) for each in pattern.split("|"))
    ]


def _names_only(query: str) -> str:
    """Return a text in which the table that DESCRIBE names follows FROM, at its place."""
    match = _DESCRIBE.match(query)
    return query if match is None else "FROM".ljust(match.end()) + query[match.end() :]


@contextmanager
def _views(workspace: Workspace, tables: Sequence[TableName]) -> Iterator[SparkSession]:
    """Yield a session in which each table is a temporary view, which is removed afterwards."""
    # A frame may read the catalog by a name that is also that of a view: all are made before the first view.
    frames = [(name_sql(table.view), _table(workspace, table)) for table in tables]
    for view, frame in frames:
        frame.createOrReplaceTempView(view)
    try:
        yield workspace.spark
    finally:
        for table in tables:
            workspace.spark.catalog.dropTempView(table.view)


def _table(workspace: Workspace, table: TableName) -> DataFrame:
    if table.layer is Layer.GOLD:
        return read_relation(workspace.relation(table.name), workspace)
    if table.layer is Layer.MAPPING:
        return workspace.frame(table.name)
    past = workspace.lake.past
    entity = workspace.entity(table.name)
    observe_silver(workspace.lake, entity)
    return read_silver(workspace.lake, workspace.spark, entity, at=None if past is None else past.at)


def _frame(session: SparkSession, query: str) -> DataFrame:
    # Inside another SELECT, Spark accepts nothing but a query.
    return session.sql(query if _STATEMENT.match(query) else f"FROM (\n{query}\n)")


def _remedy(app: App, query: str) -> str:
    known = {table.name: table for table in tables_of(app.project)}
    others = [parts for parts in table_names(_names_only(query)) if parts[-1] not in known]
    for parts in others:
        if found := nearest(parts[-1], known):
            return Phrase(
                f"Did you mean {known[found]}? ",
                Command("sql", "SHOW TABLES"),
                " lists the project's tables.",
            )
    listed = Phrase(Command("sql", "SHOW TABLES"), " lists the project's tables, with the layer of each.")
    if others and app.lake.sessions.is_shared:
        return Phrase(
            listed, f" A temporary view of yours is seen if it is global, as global_temp.{others[0][-1]}."
        )
    return listed


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of a frame, with times as ISO 8601 text in UTC, and structs and maps as dicts."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    # Several columns may have the same name.
    renamed = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    kinds = [field.dataType for field in renamed.schema.fields]
    found = renamed.selectExpr(
        *(_selected(name, kind) for name, kind in zip(renamed.columns, kinds, strict=True))
    )
    is_written = [isinstance(kind, (ArrayType, DecimalType, MapType, StructType)) for kind in kinds]
    return [
        tuple(
            parse_values(value, kind) if written and value is not None else value
            for value, kind, written in zip(row, kinds, is_written, strict=True)
        )
        for row in found.collect()
    ]


def _selected(name: str, kind: DataType) -> str:
    """Return SQL of a column that is collected; what has values inside, and a decimal, is JSON text."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType, TimestampType

    if isinstance(kind, (ArrayType, MapType, StructType)):
        return json_sql(name, kind)
    if isinstance(kind, DecimalType):
        # PySpark would give 0.00000001 another scale.
        return f"cast({name} as string)"
    # PySpark would return times in local time.
    is_time = isinstance(kind, TimestampType)
    return f"concat(translate(cast({name} as string), ' ', 'T'), 'Z')" if is_time else name
