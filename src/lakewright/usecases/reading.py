"""Read the lake: entities, relations and mappings as frames of Spark, and queries over them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import SpecError, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import check_version, readable
from lakewright.lake.frames import frame_of_texts
from lakewright.lake.observation import read_table
from lakewright.lake.partition import expand_selection
from lakewright.lake.spark_errors import (
    analysis_error,
    located_rejection,
    query_failure,
    spark_errors,
    translated_failures,
)
from lakewright.manifest.record import parse_instant_in
from lakewright.relations.entity import observe_silver, read_silver
from lakewright.schema.sql import name_sql
from lakewright.spark.causes import causes_of, first_line, innermost
from lakewright.spec.expressions.values import ValueType, render_value
from lakewright.spec.project import Project
from lakewright.spec.suggestions import meant, nearest
from lakewright.transform.row_values import is_nested, json_sql, read_rows
from lakewright.transform.system_columns import SystemColumns
from lakewright.workspace.lake_tables import (
    Layer,
    TableName,
    find_tables,
    rewritten,
    shadowed_mappings,
    tables_of,
)
from lakewright.workspace.readable_parts import check_partition_values
from lakewright.workspace.readable_parts import read_relation as relation_frame
from lakewright.workspace.sql_tables import table_names
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from lakewright.spec.models.job import Job


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
    query, shown, tables = _parsed(app, query)
    if shown is not None:
        return Answer(("layer", "name"), shown[:limit], is_cut=len(shown) > limit)
    notes = tuple(shadowed_mappings(app.project, _names_only(query)))
    with _opened(app, query, tables, as_of) as (found, more):
        frame = found.limit(limit + 1)
        rows = read_rows(frame, _selected)
        notes += tuple(more())
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
    query, shown, tables = _parsed(app, query)
    if shown is not None:
        return frame_of_texts(app.lake.new_session(), ("layer", "name"), shown)
    with _opened(app, query, tables, as_of) as (frame, notes):
        for note in notes():
            log.warning("%s", note)
        return frame


def _parsed(app: App, query: str) -> tuple[str, list[tuple[str, str]] | None, Sequence[TableName]]:
    """Return a query, the rows of SHOW TABLES if it is that, and else the tables that it names."""
    check_query(query)
    query = query.rstrip().rstrip(";")
    shown = _shown_tables(app.project, query)
    return query, shown, find_tables(app.project, _names_only(query)) if shown is None else ()


@contextmanager
def _opened(
    app: App, query: str, tables: Sequence[TableName], as_of: object
) -> Iterator[tuple[DataFrame, Callable[[], Iterable[str]]]]:
    """Yield the rows of a query, and what returns the notes about what was read for them so far."""
    at = None if as_of is None else instant_of(app, as_of)
    with (
        app.lake.looking_back(at) as past,
        _rejections(app, query),
        _views(app.workspace, tables) as session,
    ):

        def notes() -> Iterable[str]:
            return (*(() if past is None else dict.fromkeys(past.notes)), *app.workspace.notes.take())

        yield _frame(session, rewritten(query, tables)), notes


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
        is_table = innermost(causes_of(error), "TABLE_OR_VIEW_NOT_FOUND") is not None
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
        return relation_frame(workspace.relation(table.name), workspace)
    if table.layer is Layer.MAPPING:
        return workspace.frame(table.name)
    past = workspace.lake.past
    entity = workspace.entity(table.name)
    observe_silver(workspace.lake, entity)
    at, current = None if past is None else past.at, table.is_current
    return read_silver(workspace.lake, workspace.spark, entity, at=at, current=current)


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


def _selected(name: str, kind: DataType) -> str:
    """Return SQL of a column that is collected: times are ISO 8601 text, decimals keep their digits."""
    from pyspark.sql.types import DecimalType, TimestampType

    if is_nested(kind):
        return json_sql(name, kind)
    if isinstance(kind, DecimalType):
        # PySpark would give 0.00000001 another scale.
        return f"cast({name} as string)"
    # PySpark would return times in local time.
    is_time = isinstance(kind, TimestampType)
    return f"concat(translate(cast({name} as string), ' ', 'T'), 'Z')" if is_time else name


AsOf = int | str | date | datetime
"""A version of a Delta table, or a time: a date, a date and time, or ISO 8601 text."""


def read_entity(app: App, name: str, *, as_of: AsOf | None = None, current: bool = False) -> DataFrame:
    """Return the rows of an entity's silver table.

    Args:
        app: The project.
        name: Name or id of the entity.
        as_of: A version of the Delta table, or a time. At a time, an entity of the strategy Historic has the
            versions of its records that were valid then; another entity has the rows that its table had then,
            as far as Delta keeps them. A time without an offset is in the lake's time zone.
        current: Only current rows: those that are not deleted, and of Historic the open versions.

    Raises:
        SpecError: There is no such entity.
        TargetError: It has no table yet, or its table was created after that time, or its log has no such
            version, or no longer.
        UsageError: `as_of` is neither a version nor a time.
    """
    entity = app.project.entity(name)
    address = entity.places(app.project.lake).silver
    observe_silver(app.lake, entity)
    session = app.lake.new_session()
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        system = SystemColumns(app.project.lake.systemfield_prefix, entity.destination)
        check_version(app.lake, address, as_of)
        with readable(entity.name, as_of):
            frame = read_table(session, address, as_of)
        has_history = system.has_history(frame.columns)
        return frame.where(system.current_sql(has_history=has_history)) if current else frame
    at = None if as_of is None else instant_of(app, as_of)
    return read_silver(app.lake, session, entity, at=at, current=current)


def read_relation(
    app: App,
    name: str,
    *,
    partition: Mapping[str, object] | None = None,
    values: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return the rows of a relation: all, or those of some partitions.

    Args:
        app: The project.
        name: Name of the relation; `project/name` for one of an imported project.
        partition: Values, or lists of them, by partition column.
        values: Values of names that its declaration uses, such as a job's parameters.

    Raises:
        SpecError: There is no such relation, its declaration needs other names or partitions, or what it
            reads does not exist.
        TargetError: It does not exist yet, or what it reads fails.
    """
    workspace = _workspace(app, values)
    locate = partial(app.project.located, "relation", name)
    subject, remedy = f"relation {name!r}", "Create what it reads, or correct the relation."
    with (
        _hint(),
        translated_failures(f"while {subject} was read"),
        located_rejection(subject, locate, remedy),
    ):
        relation = workspace.relation(name)
        types = {each.name.lower(): each.value_type for each in relation.partitions}
        selection = {
            column: partition_texts(column, value, types.get(column.lower()))
            for column, value in (partition or {}).items()
        }
        check_partition_values(workspace, None, relation, selection, ())
        return _with_notes(
            workspace, relation.read(workspace, expand_selection(relation.partitions, selection))
        )


def read_mapping(app: App, name: str, *, values: Mapping[str, object] | None = None) -> DataFrame:
    """Return the rows of a mapping.

    Args:
        app: The project.
        name: Name of the mapping; `project/name` for one of an imported project.
        values: Values of names that its declaration uses, such as a job's parameters.

    Raises:
        SpecError: There is no such mapping, or its declaration needs other names.
    """
    with _hint(), translated_failures(f"while mapping {name!r} was read"):
        workspace = _workspace(app, values)
        return _with_notes(workspace, workspace.frame(name))


def _with_notes(workspace: Workspace, frame: DataFrame) -> DataFrame:
    """Return a frame after warning of what its mappings and relations report, as a run would."""
    for text in workspace.notes.take():
        log.warning("%s", text)
    return frame


@contextmanager
def _hint() -> Iterator[None]:
    """Add to an error about an unknown name how its value is given."""
    try:
        yield
    except SpecError as error:
        if any("unknown_name" in fault.details for fault in error.faults):
            error.add_note("The value of a name that only a job has is an argument: read(day=…).")
        raise


def _workspace(app: App, values: Mapping[str, object] | None) -> Workspace:
    if not values:
        return app.workspace
    for name, value in values.items():
        _check_used(app.project, name)
        check_single(name, value)
    scope = app.project.scope.instance({}, values)
    return Workspace(app.project.within(scope), scope, app.lake)


def _check_used(project: Project, name: str) -> None:
    """Raise an error if a name is a slip of one that the project knows; of any other that it knows not, warn.

    Files of SQL and mappings in Python may use names that no declaration shows.
    """
    known = {*project.scope.names, *(each for job in project.jobs.values() for each in _names_of(job))}
    if name in known or _is_used(project, name):
        return
    message = f"no declaration of the project uses the name {name!r}"
    if remedy := meant(name, known):
        raise UsageError(message, remedy=remedy)
    log.warning("%s; its value may have no effect", message)


def _is_used(project: Project, name: str) -> bool:
    definitions = (project.mappings, project.relations, project.entity_definitions, project.connections)
    texts = (str(each.raw) for found in definitions for each in found.values())
    word = re.compile(rf"\$\{{?[^}}]*\b{re.escape(name)}\b")
    return any(map(word.search, texts)) or any(_is_used(each, name) for each in project.imports.values())


def _names_of(job: Job) -> set[str]:
    return {*(each.name for each in job.parameters), *job.environment}


def partition_texts(column: str, value: object, kind: ValueType | None) -> tuple[str, ...]:
    """Return the values of a partition column as texts.

    Raises:
        UsageError: A value of a column of type date has a time of day.
    """
    values = value if isinstance(value, Sequence | Set) and not isinstance(value, str) else (value,)
    for each in values:
        if kind is ValueType.DATE and isinstance(each, datetime) and each.time() != time():
            raise UsageError(
                f"partition column {column} is of type date, and {each!r} has a time of day",
                remedy="Give value.date().",
            )
    return tuple(map(render_value, values))


def check_single(name: str, value: object, *, is_range: bool = False) -> None:
    """Check that the value of a name is one value: a text, a number, a boolean or a time.

    Raises:
        UsageError: It has several values.
    """
    is_one = not isinstance(value, Sequence | Set | Mapping | range) or isinstance(value, str)
    if is_range or not is_one or getattr(value, "ndim", None):
        raise UsageError(
            f"{name}={value!r} has several values, but each name has one",
            remedy="Read with each of them, and unite the frames: read(…).union(read(…)).",
        )


def instant_of(app: App, as_of: object) -> datetime:
    """Return a time that a user gave, in UTC.

    Raises:
        UsageError: It is no time.
    """
    if isinstance(as_of, date) and not isinstance(as_of, datetime):
        as_of = datetime.combine(as_of, time())
    zone = app.project.lake.zone
    if isinstance(as_of, datetime) and str(as_of) != "NaT":  # which pandas makes a datetime
        try:
            return (as_of.replace(tzinfo=zone) if as_of.tzinfo is None else as_of).astimezone(UTC)
        except OverflowError as error:
            raise UsageError(
                f"as_of={as_of!r} is before the first or after the last time that there is in UTC",
                remedy="Give a time of the table.",
            ) from error
    found = parse_instant_in(as_of, zone) if isinstance(as_of, str) else None
    if found is None:
        raise UsageError(
            f"as_of={as_of!r} is neither a version of the table nor a time",
            remedy="Give an int, a date, a datetime, or ISO 8601 text such as 2024-05-01T12:00:00Z.",
        )
    return found
