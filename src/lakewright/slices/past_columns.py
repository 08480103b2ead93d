"""Checks of an entity's past that need neither Spark nor data: its place can be read, and has the columns.

Columns are known of Delta tables with a path, and of Parquet and CSV files on this machine.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.file_probe import is_examinable
from lakewright.lake.observation import observe_table
from lakewright.lake.parquet_footer import column_names
from lakewright.lake.paths import local_path
from lakewright.reader.csv import names_of_header
from lakewright.reader.form import Form, form_of_slices
from lakewright.reader.lines import first_of
from lakewright.slices.past import exports_of, reader_of, table_of, unreadable_past
from lakewright.strategies.past_load import check_past_columns

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.history_from import HistoryFrom

__all__ = ["check_past"]


def check_past(lake: Lake, entity: Entity) -> None:
    """Check that an entity's past can be read, and has the columns that the entity names.

    Raises:
        MigrationError: The folder or table can't be read; or it lacks a column, which `lacks` of the details
            names.
    """
    history = entity.settings.history_from
    if history is None:
        return
    wanted = _wanted(entity, history)
    for place, columns in _columns(lake, entity, history):
        check_past_columns(columns, wanted, history, place)


def _wanted(entity: Entity, history: HistoryFrom) -> list[str]:
    """Return the columns that the past must have, as far as they are known without a slice."""
    roles = [history.valid_from, *(() if history.valid_to is None else (history.valid_to,))]
    given = {name.lower(): own for name, own in history.columns.items()}
    if entity.transformations:
        return [*roles, *given.values()]  # these may make the key's columns
    calculated = {column.source.lower() for column in entity.calculated}
    keys = [name for name in entity.business_keys if name.lower() not in calculated and "." not in name]
    return [*roles, *given.values(), *(given.get(name.lower(), name) for name in keys)]


def _columns(lake: Lake, entity: Entity, history: HistoryFrom) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each place of the past with its columns, where they are known."""
    if history.table is not None:
        address = table_of(lake, history)
        if address.location is None:
            return  # only Spark knows the catalog
        state = observe_table(lake, address)
        if not state.exists:
            raise unreadable_past(history, f"there is no Delta table at {address.location}")
        yield history.place, state.names
        return
    form = form_of_slices(reader_of(entity, history).settings.slice_format)
    for export in exports_of(lake, history):
        columns: dict[str, None] = {}
        for place in export.paths:
            path = local_path(place)
            found = None if path is None or not is_examinable(path) else _columns_of(path, form, history)
            if found is None:
                return
            columns |= dict.fromkeys(found)
        yield export.name, (*columns, *_partitions(export.paths))


def _columns_of(path: Path, form: Form, history: HistoryFrom) -> Sequence[str] | None:
    """Return the columns of a file; None if only Spark knows them."""
    try:
        if form.kind == "parquet":
            return column_names(path)
        if form.kind == "csv" and form.header:
            first = first_of(path, form)
            return (
                first if first is None else names_of_header(first, form, str(path)) or _without_header(path)
            )
    except (OSError, ValueError, LakewrightError) as error:
        raise unreadable_past(history, str(error)) from error
    return None


def _without_header(path: Path) -> Sequence[str]:
    raise ValueError(f"{path} has no line with the names of the columns")


def _partitions(paths: Sequence[str]) -> Iterator[str]:
    """Yield the columns that the names of folders give, as in `day=2022-01-01`."""
    for path in paths:
        yield from (part.partition("=")[0] for part in path.split("/")[:-1] if "=" in part)
