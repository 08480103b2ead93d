"""`lakewright sql`: query the project's entities, relations and mappings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import rows_option
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import Block, Span, Table, line
from lakewright.cli.progress import working
from lakewright.notebook import json_value, value_text
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.usecases.reading import Answer


@command
@click.argument("query")
@rows_option("The largest number of rows.", 50)
@click.option(
    "--as-of",
    metavar="TIME",
    help="Read tables as they were at this time, such as 2022-03-01 or 2022-03-01T06:00:00+02:00.",
)
@despite_faults
def sql(call: Call, /, query: str, *, rows: int, as_of: str | None) -> None:
    """Answer a query in Spark's SQL; the project's entities, relations and mappings are the tables.

    silver.NAME is the table of an entity, gold.NAME a relation, mapping.NAME a mapping. NAME means an
    entity's current rows, NAME.history all versions.

    Examples:
        lakewright sql "SELECT * FROM silver.regions WHERE dlf_deleted"
        lakewright sql "SELECT count(*) AS rows FROM frequencies WHERE dlf_IsCurrent" -o json
        lakewright sql "SELECT * FROM regions" --as-of 2022-03-01
        lakewright sql "SELECT * FROM gold.bronze_regions" -D month=2022-01-01
        lakewright sql 'SHOW TABLES'
        lakewright sql 'DESCRIBE silver.regions'
    """
    from lakewright.usecases.reading import query_lake

    with working(call.output, "running the query"):
        answer = query_lake(call.app, query, limit=rows, as_of=as_of)
    # A page ends with the count.
    notes = (*answer.notes, *((_count(answer),) if answer.is_cut and call.output.is_json else ()))
    call.output.labelled("note", notes)
    shown = [json_value(dict(zip(answer.columns, row, strict=True))) for row in answer.rows]
    call.output.answer(shown, _page(answer))


def _page(answer: Answer) -> Iterator[Block]:
    null = Span("null", "dim")
    cells = (tuple(line(null if each is None else value_text(each)) for each in row) for row in answer.rows)
    yield Table(tuple(answer.columns), tuple(cells))
    yield line(Span(_count(answer), "dim"))


def _count(answer: Answer) -> str:
    count = counted(len(answer.rows), "row")
    return f"the first {count}; --rows shows more" if answer.is_cut else count
