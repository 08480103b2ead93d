"""Query the lake with SQL; the project's relations and entities are the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.lake.observation import read_table
from lakewright.workspace.sql_tables import table_names
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Answer", "query_lake"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query.

    Attributes:
        is_cut: Whether there are more rows.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    is_cut: bool


def query_lake(app: App, query: str, *, limit: int) -> Answer:
    """Return the first rows of a query in Spark's SQL; instants are ISO 8601 text in UTC.

    An entity is its silver table. Only queries are accepted: no DROP, no INSERT.

    Raises:
        UsageError: Spark rejects the query.
    """
    from pyspark.errors import PySparkException

    workspace = app.workspace
    try:
        for name in {parts[0] for parts in table_names(query) if len(parts) == 1}:
            frame = _table(workspace, name)
            if frame is not None:
                frame.createOrReplaceTempView(name)
        # Inside another SELECT, Spark accepts nothing but a query.
        frame = workspace.spark.sql(f"FROM (\n{query}\n)").limit(limit + 1)
        rows = [tuple(row) for row in _with_times_as_text(frame).collect()]
        return Answer(frame.columns, rows[:limit], is_cut=len(rows) > limit)
    except PySparkException as error:
        raise UsageError(
            f"Spark rejects the query: {_first_line(error)}",
            remedy="Tables are the project's: see `lakewright ls entities` and `lakewright ls relations`.",
        ) from error


def _table(workspace: Workspace, name: str) -> DataFrame | None:
    project = workspace.project
    if (relation := _name_in(project.relations, name)) is not None:
        return workspace.relation(relation).read(workspace)
    if (entity := _name_in(project.entities, name)) is not None:
        silver = project.entities[entity].places(project.lake).silver
        return read_table(workspace.spark, silver)
    return None


def _with_times_as_text(frame: DataFrame) -> DataFrame:
    """Return the frame with instants as ISO 8601 text in UTC; PySpark would return them in local time."""
    from pyspark.sql import functions as f

    names = [f"c{position}" for position in range(len(frame.columns))]
    # Several columns may have the same name.
    renamed = frame.toDF(*names)
    return renamed.select(
        [
            f.concat(f.translate(f.col(name).cast("string"), " ", "T"), f.lit("Z")).alias(name)
            if type_name == "timestamp"
            else f.col(name)
            for name, type_name in renamed.dtypes
        ]
    )


def _name_in(section: Mapping[str, Any], name: str) -> str | None:
    if name in section:
        return name
    return next((other for other in section if other.lower() == name.lower()), None)


def _first_line(error: BaseException) -> str:
    """Return Spark's message without its SQLSTATE and position."""
    first = str(error).strip().partition("\n")[0]
    return re.sub(r"\s*(SQLSTATE: \w+)?[\s;.]*((\()?line \d+,? pos \d+(\))?)?;?$", "", first)
