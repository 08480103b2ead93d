"""Read entities, relations and mappings as frames of Spark."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import Location, SpecError, UsageError
from lakewright.lake.commit import check_version, readable
from lakewright.lake.observation import read_table
from lakewright.lake.partition import expand_selection
from lakewright.lake.spark_errors import failures_told, located_rejection
from lakewright.relations.entity import observe_silver, read_silver
from lakewright.spec.expressions.values import ValueType, render_value
from lakewright.spec.models.entity import Strategy
from lakewright.transform.instants import parse_instant_in
from lakewright.transform.system_columns import SystemColumns
from lakewright.workspace.partition_values import check_partition_values
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project

__all__ = [
    "AsOf",
    "check_single",
    "instant_of",
    "partition_texts",
    "read_entity",
    "read_mapping",
    "read_relation",
]

log = logging.getLogger(__name__)

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
        has_history = entity.strategy is Strategy.HISTORIC
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

    def locate() -> Location | None:
        definition = app.project.definitions("relation").get(name)
        return None if definition is None else definition.at()

    subject, remedy = f"relation {name!r}", "Create what it reads, or correct the relation."
    with _hint(), failures_told(f"while {subject} was read"), located_rejection(subject, locate, remedy):
        relation = workspace.relation(name)
        types = {each.name.lower(): each.value_type for each in relation.partitions}
        selection = {
            column: partition_texts(column, value, types.get(column.lower()))
            for column, value in (partition or {}).items()
        }
        check_partition_values(workspace, None, relation, selection, ())
        return _told(workspace, relation.read(workspace, expand_selection(relation.partitions, selection)))


def read_mapping(app: App, name: str, *, values: Mapping[str, object] | None = None) -> DataFrame:
    """Return the rows of a mapping.

    Args:
        app: The project.
        name: Name of the mapping; `project/name` for one of an imported project.
        values: Values of names that its declaration uses, such as a job's parameters.

    Raises:
        SpecError: There is no such mapping, or its declaration needs other names.
    """
    with _hint(), failures_told(f"while mapping {name!r} was read"):
        workspace = _workspace(app, values)
        return _told(workspace, workspace.frame(name))


def _told(workspace: Workspace, frame: DataFrame) -> DataFrame:
    """Return a frame after warning of what its mappings and relations have to tell, as a run would."""
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
    told = f"no declaration of the project uses the name {name!r}"
    if near := get_close_matches(name, known, n=1):
        raise UsageError(told, remedy=f"did you mean {near[0]!r}?")
    log.warning("%s; its value may have no effect", told)


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
