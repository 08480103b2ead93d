"""`lakewright sql`: look into the lake with a query over the project's relations and entities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Block, Span, Table, line
from lakewright.cli.progress import working
from lakewright.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.app import App
    from lakewright.workspace.workspace import Workspace

__all__ = ["sql"]


@command(
    examples=[
        'lakewright sql "SELECT * FROM regions WHERE dlf_deleted"',
        'lakewright sql "SELECT count(*) AS rows FROM frequencies WHERE dlf_IsCurrent" -o json',
        'lakewright sql "SELECT * FROM bronze_regions" -D month=2022-01-01',
    ],
)
@click.argument("query")
@click.option(
    "-n", "--rows", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many."
)
@click.pass_obj
def sql(call: Call, /, query: str, *, rows: int) -> None:
    """Answer a query in Spark's SQL; relations and entities of the project are its tables.

    An entity is its silver table. Expressions in a relation take their values from the project and -D.
    """
    app = call.app
    with working(call.output, "asking Spark"):
        columns, found = _answer(app, query, rows + 1)
    shown = [dict(zip(columns, row, strict=True)) for row in found[:rows]]
    call.output.result(shown, _page(columns, found[:rows], is_cut=len(found) > rows))


def _answer(app: App, query: str, limit: int) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    from pyspark.errors import PySparkException

    from lakewright.workspace.sql_tables import table_names
    from lakewright.workspace.workspace import Workspace

    workspace = Workspace(app.project, app.project.scope, app.lake)
    try:
        for name in {parts[0] for parts in table_names(query) if len(parts) == 1}:
            frame = _table(workspace, name)
            if frame is not None:
                frame.createOrReplaceTempView(name)
        # Inside of another SELECT nothing but a query is accepted: no DROP, no INSERT.
        frame = workspace.spark.sql(f"FROM (\n{query}\n)").limit(limit)
        return frame.columns, [tuple(row) for row in _with_times_as_text(frame).collect()]
    except PySparkException as error:
        raise UsageError(
            f"Spark refuses the query: {_said(error)}",
            remedy="Tables are the project's: see `lakewright ls entities` and `lakewright ls relations`.",
        ) from error


def _table(workspace: Workspace, name: str) -> DataFrame | None:
    from lakewright.lake.observation import read_table

    project = workspace.project
    if (relation := _named(project.relations, name)) is not None:
        return workspace.relation(relation).read(workspace)
    if (entity := _named(project.entities, name)) is not None:
        silver = project.entities[entity].places(project.lake).silver
        return read_table(workspace.spark, silver)
    return None


def _with_times_as_text(frame: DataFrame) -> DataFrame:
    """Return the frame with instants as ISO 8601 in UTC: PySpark would give them in this machine's zone."""
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


def _named(section: Mapping[str, Any], name: str) -> str | None:
    if name in section:
        return name
    return next((other for other in section if other.lower() == name.lower()), None)


def _said(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return re.sub(r"\s*(SQLSTATE: \w+)?[\s;.]*((\()?line \d+,? pos \d+(\))?)?;?$", "", first)


def _page(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], *, is_cut: bool) -> Iterator[Block]:
    yield Table(tuple(columns), tuple(tuple(line(_shown(value)) for value in row) for row in rows))
    count = f"the first {len(rows)} rows; --rows shows more" if is_cut else f"{len(rows)} rows"
    yield line(Span(count, "dim"))


def _shown(value: Any) -> Span:
    if value is None:
        return Span("null", "dim")
    return Span(str(value).lower() if isinstance(value, bool) else str(value))
