"""The quarantine: bad rows of slices, put aside in a folder for each slice, and found for errors.

The rows of a slice lie in `quarantine/<path of the entity's bronze folder>/<slice>/rows.json`, one JSON
object a line. They are written before the slice's commit, and replaced whenever the slice is processed again.
Metrics count them only with the commit.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, NullKeyError, SchemaDriftError, SliceError
from lakewright.lake.files import files_at
from lakewright.lake.paths import join, local_path
from lakewright.reader.lines import lines_of
from lakewright.slices.reading import read_slice
from lakewright.strategies.bad_rows import (
    SHOWN,
    BadRow,
    check_bad_rows,
    collect_bad_rows,
    message_with_rows,
    rows_text,
)
from lakewright.strategies.schema_fit import fit_slice
from lakewright.strategies.slice_load import LoadRequest
from lakewright.transform.bad_rows import unparsed_rows
from lakewright.transform.fault_words import fault_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity


FILE = "rows.json"

REPLAYED = "_replayed"
"""Folder, below that of a slice, of the rows that are put aside while a rewind applies it again."""


def quarantine_folder(lake: Lake, entity: Entity, slice_name: str) -> str:
    """Return the folder of the rows of a slice that were put aside."""
    return join(entity.places(lake.settings).quarantine, slice_name)


def save_bad_rows(
    lake: Lake,
    entity: Entity,
    slice_: Slice,
    rows: Sequence[BadRow],
    *,
    table: TableState,
    records: int,
    is_replayed: bool = False,
) -> tuple[BadRow, ...]:
    """Put rows of a slice aside in place of those of an earlier attempt; return them with their lines.

    Args:
        lake: The lake.
        entity: The entity.
        slice_: The slice.
        rows: Its bad rows.
        table: The table as it is, for the error.
        records: Number of the slice's other rows.
        is_replayed: Whether a rewind applies the slice again. Its rows then lie beside those of the table
            until `keep_replayed_rows`.

    Raises:
        BadRowsError: There are more than the entity allows, or no others; nothing was written.
    """
    located = _with_lines(rows, entity.settings.slice_format.encoding)
    check_bad_rows(located, entity, table, records=records, is_replayed=is_replayed)
    folder = quarantine_folder(lake, entity, slice_.name)
    folder = join(folder, REPLAYED) if is_replayed else folder
    files = files_at(folder, lake)
    if located:
        lines = (json.dumps({"slice": slice_.name, **row.as_json()}, ensure_ascii=False) for row in located)
        files.write(join(folder, FILE), "".join(f"{line}\n" for line in lines).encode())
    elif files.exists(folder):
        files.remove(folder)
    return located


def keep_replayed_rows(lake: Lake, entity: Entity, slice_name: str, count: int) -> None:
    """Let the rows that a rewind has put aside take the place of a slice's earlier ones.

    Doing it again changes nothing.

    Args:
        lake: The lake.
        entity: The entity.
        slice_name: Name of the slice.
        count: Number of its bad rows.
    """
    folder = quarantine_folder(lake, entity, slice_name)
    files, replayed = files_at(folder, lake), join(folder, REPLAYED)
    if count == 0:
        remove_rows(lake, entity, slice_name)
    elif files.exists(join(replayed, FILE)):
        files.remove(join(folder, FILE))
        files.rename(join(replayed, FILE), join(folder, FILE))
        files.remove(replayed)


def remove_rows(lake: Lake, entity: Entity, slice_name: str) -> None:
    """Remove the rows of a slice that were put aside."""
    folder = quarantine_folder(lake, entity, slice_name)
    files_at(folder, lake).remove(folder)


def name_bad_rows(
    error: LakewrightError,
    slice_: Slice,
    request: LoadRequest,
    *,
    lake: Lake,
    session: SparkSession,
    entity: Entity,
) -> LakewrightError:
    """Return an error of a slice with the place, or the key, of its first bad rows, if they caused it.

    They are looked for by a query, as if they were to be put aside.
    """
    if not isinstance(error, (SliceError, SchemaDriftError, NullKeyError)):
        return error
    lenient = entity.with_settings(on_bad_rows="quarantine")
    try:
        frame = read_slice(lake, session, slice_, lenient)
        bad = unparsed_rows(frame)
        if not isinstance(error, SliceError):
            bad = fit_slice(lake, session, lenient, frame, request).prepared.bad
        found = collect_bad_rows(bad, SHOWN, slice_.name)
    except Exception:  # whatever it is, the first error says what is wrong
        return error
    if not found:
        return error
    rows = _with_lines(found, entity.settings.slice_format.encoding)
    if isinstance(error, SliceError):
        message = f"the slice {slice_.name} of {entity.name} has rows that can't be read: {rows_text(rows)}"
        subject: str | None = slice_.name
    else:
        message, subject = message_with_rows(error.message, fault_of(error), rows), error.subject
    details = {**error.details, "rows": [row.as_json() for row in rows[:SHOWN]]}
    return type(error)(message, remedy=error.remedy, details=details, subject=subject)


def _with_lines(rows: Iterable[BadRow], encoding: str) -> tuple[BadRow, ...]:
    """Return the rows with the numbers of their lines, if Python can read their file."""
    found: list[BadRow] = []
    wanted: dict[str, dict[str, list[BadRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if local_path(row.file) is None or row.key is not None or not row.record.strip():
            found.append(row)
        else:
            wanted[row.file][_first_line(row.record)].append(row)
    for file, by_text in wanted.items():
        found += _located(file, by_text, encoding)
    return tuple(sorted(found, key=lambda row: (row.file, row.line or 0, row.record)))


def _located(file: str, by_text: Mapping[str, list[BadRow]], encoding: str) -> list[BadRow]:
    found: list[BadRow] = []
    path = local_path(file)
    for number, line in enumerate(lines_of(path, encoding) if path is not None else (), 1):
        rows = by_text.get(line.strip())
        if rows:
            found.append(replace(rows.pop(0), line=number))
    return [*found, *(row for rows in by_text.values() for row in rows)]


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "").strip()
