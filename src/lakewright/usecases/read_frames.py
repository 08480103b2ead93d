"""Read entities, relations and mappings as frames of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import SpecError, TargetError, UsageError
from lakewright.lake.observation import delta_table, observe_table, read_table
from lakewright.lake.partition import expand_selection
from lakewright.slices.processing_time import parse_processing_time
from lakewright.spec.expressions.values import render_value
from lakewright.spec.models.entity import Strategy
from lakewright.transform.sql import name_sql
from lakewright.transform.system_columns import SystemColumns
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address

__all__ = ["AsOf", "read_entity", "read_mapping", "read_relation"]

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
        TargetError: It has no table yet, or its table was created after that time.
        UsageError: `as_of` is neither a version nor a time.
    """
    entity = app.project.entity(name)
    address = entity.places(app.project.lake).silver
    if not observe_table(app.lake, address).exists:
        raise TargetError(
            f"entity {entity.name!r} has no silver table yet",
            remedy="Run a job with its target; the first slice creates the table.",
        )
    system = SystemColumns(app.project.lake.systemfield_prefix, entity.destination)
    session = app.lake.new_session()
    is_version = isinstance(as_of, int) and not isinstance(as_of, bool)
    at = None if as_of is None or is_version else _instant(app, as_of)
    if at is not None and entity.strategy is Strategy.HISTORIC:
        return read_table(session, address).where(_valid_sql(system, at))
    version = as_of if isinstance(as_of, int) else None
    if at is not None:
        version = _version_at(session, entity, address, at)
    frame = read_table(session, address, version)
    has_history = entity.strategy is Strategy.HISTORIC
    return frame.where(system.current_sql(has_history=has_history)) if current else frame


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
        SpecError: There is no such relation, or its declaration needs other names or partitions.
    """
    workspace = _workspace(app, values)
    with _hint():
        relation = workspace.relation(name)
        selection = {column: _texts(value) for column, value in (partition or {}).items()}
        return relation.read(workspace, expand_selection(relation.partitions, selection))


def read_mapping(app: App, name: str, *, values: Mapping[str, object] | None = None) -> DataFrame:
    """Return the rows of a mapping.

    Args:
        app: The project.
        name: Name of the mapping; `project/name` for one of an imported project.
        values: Values of names that its declaration uses, such as a job's parameters.

    Raises:
        SpecError: There is no such mapping, or its declaration needs other names.
    """
    with _hint():
        return _workspace(app, values).frame(name)


@contextmanager
def _hint() -> Iterator[None]:
    """Add to an error about an unknown name how its value is given."""
    try:
        yield
    except SpecError as error:
        if any("unknown name" in fault.message for fault in error.faults):
            error.add_note("The value of a name that only a job has is an argument: read(day=…).")
        raise


def _workspace(app: App, values: Mapping[str, object] | None) -> Workspace:
    if not values:
        return app.workspace
    scope = app.project.scope.instance({}, values)
    return Workspace(app.project.within(scope), scope, app.lake)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, Sequence | Set) and not isinstance(value, str):
        return tuple(map(render_value, value))
    return (render_value(value),)


def _instant(app: App, as_of: object) -> datetime:
    if isinstance(as_of, date) and not isinstance(as_of, datetime):
        as_of = datetime.combine(as_of, time())
    text = as_of.isoformat() if isinstance(as_of, datetime) else as_of
    found = parse_processing_time(text, app.project.lake.zone) if isinstance(text, str) else None
    if found is None:
        raise UsageError(
            f"as_of={as_of!r} is neither a version of the table nor a time",
            remedy="Give an int, a date, a datetime, or ISO 8601 text such as 2024-05-01T12:00:00Z.",
        )
    return found


def _valid_sql(system: SystemColumns, at: datetime) -> str:
    start, end, instant = name_sql(system.valid_from), name_sql(system.valid_to), _instant_sql(at)
    return f"{start} <= {instant} AND ({end} IS NULL OR {end} > {instant})"


def _instant_sql(at: datetime) -> str:
    return f"TIMESTAMP '{at.isoformat()}'"


def _version_at(session: SparkSession, entity: Entity, address: Address, at: datetime) -> int:
    """Return the last version of a table that was committed until a time."""
    history = delta_table(session, address).history().where(f"timestamp <= {_instant_sql(at)}")
    row = history.selectExpr("max(version)").first()
    if row is None or row[0] is None:
        raise TargetError(
            f"the log of the table of {entity.name} knows no version from {at.isoformat()} or before",
            remedy="The table did not exist then, or its log no longer reaches back so far.",
        )
    return int(row[0])
