"""Bad rows of a slice that are put aside, so that its other rows can be processed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import BadRowsError
from lakewright.errors.phrase import Phrase
from lakewright.lake.paths import local_path
from lakewright.manifest.payload import MAY_SKIP
from lakewright.schema.fault import Fault, Owner, Reason
from lakewright.spec.words import counted
from lakewright.strategies.outdated import rebuild_command
from lakewright.transform.fault_words import fault_remedy, fault_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from lakewright.lake.delta_log import TableState
    from lakewright.spec.models.entity import Entity


_OF_EARLIER_SLICES = "the type that the earlier slices give the column"

SHOWN = 10
"""Number of bad rows that an error names."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """One bad row.

    Attributes:
        fault: What is wrong with it: the first fault.
        file: Its file: a local path or a URI.
        line: The number of its line, if it is known.
        key: Values of its business key; None if they are not known.
        record: Its text, or its columns as JSON.
        further: Its other faults, of which there are nine at most.
        within: The path of its file in the folder that is the slice; empty for a slice of one file.
    """

    fault: Fault
    file: str
    line: int | None = None
    key: Mapping[str, Any] | None = None
    record: str = ""
    further: tuple[Fault, ...] = ()
    within: str = ""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with it."""
        return (self.fault, *self.further)

    def as_json(self) -> dict[str, Any]:
        """Return the row as the quarantine holds it."""
        return {
            "reason": _text(self.faults),
            "fault": self.fault.as_json(),
            **({"further": [each.as_json() for each in self.further]} if self.further else {}),
            "file": self.file,
            "line": self.line,
            "key": None if self.key is None else dict(self.key),
            "record": self.record,
        }

    def text(self, *, of_earlier_slices: bool = False) -> str:
        """Return where the row is, and what is wrong with it; see `fault_text`."""
        return f"{self.place}: {_text(self.faults, of_earlier_slices=of_earlier_slices)}"

    @property
    def place(self) -> str:
        """Where the row is: its line, its key, or the row itself."""
        name = self.within or self.file.rstrip("/").rpartition("/")[2]
        if self.line is not None:
            return f"{name}, line {self.line}"
        if self.key:
            return ", ".join(f"{column}={value}" for column, value in self.key.items())
        return f"{name}, {self.record[:100]}"


def collect_bad_rows(bad: DataFrame | None, most: int, slice_name: str) -> tuple[BadRow, ...]:
    """Return the bad rows of a slice, found by one query; at most one more than `most`."""
    if bad is None:
        return ()
    rows = (_bad_row(row, slice_name) for row in bad.limit(most + 1).collect())
    return tuple(sorted(rows, key=lambda row: (row.file, row.record)))


def check_bad_rows(
    rows: Sequence[BadRow],
    entity: Entity,
    table: TableState,
    *,
    records: int,
    is_replayed: bool = False,
) -> None:
    """Raise `BadRowsError` unless a slice may be processed without its bad rows.

    There may be `max_bad_rows` of them, and they must not be all of its rows: then the declaration is as
    likely to be wrong as the slice.

    Args:
        rows: The bad rows; at most one more than `max_bad_rows`.
        entity: The entity.
        table: The table as it is.
        records: Number of the other rows of the slice.
        is_replayed: Whether the slice is applied again, so that earlier slices give the table its types.
    """
    most = entity.settings.max_bad_rows
    if not rows or (records and len(rows) <= most):
        return
    remedy = _type_remedy(rows, entity, table, is_replayed=is_replayed)
    details: dict[str, Any] = {"max_bad_rows": most, "rows": [row.as_json() for row in rows[:SHOWN]]}
    texts = rows_text(rows, of_earlier_slices=is_replayed)
    if records:
        message = f"the slice has more than {counted(most, 'bad row')}, which is max_bad_rows: {texts}"
        remedy = remedy if len(rows) > 1 else None
        remedy = remedy or "Correct the slice, or raise max_bad_rows."
    else:
        message = f"every row of the slice is bad: {texts}"
        remedy, details[MAY_SKIP] = remedy or _declaration_remedy(rows, entity), True
    raise BadRowsError(message, remedy=remedy, details=details)


def _declaration_remedy(rows: Iterable[BadRow], entity: Entity) -> str:
    """Return what to check if no row of a slice can be processed."""
    if all(row.fault.reason is Reason.UNPARSED for row in rows):
        kind = entity.settings.slice_format.kind
        return f"Check the `format`: no row parses as {kind}. Correct the declaration, or the slice."
    return "Correct the slice, or what the entity declares of its columns."


def _type_remedy(
    rows: Sequence[BadRow], entity: Entity, table: TableState, *, is_replayed: bool
) -> str | None:
    """Return that the type of a column is to be checked if all bad rows misfit it; else None."""
    found = [{(each.column, each.type, each.owner) for each in row.faults} for row in rows]
    common = set.intersection(*found)
    fault = next((e for e in rows[0].faults if (e.column, e.type, e.owner) in common and e.is_misfit), None)
    if fault is None:
        return None
    hint = _type_hint(fault, entity, table, is_replayed=is_replayed)
    return Phrase(f"{hint} ", fault_remedy(fault, rebuild_command(entity)))


def _type_hint(fault: Fault, entity: Entity, table: TableState, *, is_replayed: bool) -> str:
    """Return that the type of a column may be the cause, with the declared one and that of the table."""
    silver = entity.silver_name(fault.column)
    if fault.owner is Owner.TABLE:
        declared = next((each.type for each in entity.columns if each.silver.lower() == silver.lower()), None)
        whose = _OF_EARLIER_SLICES if is_replayed else "which is that of the table"
        also = "" if declared is None else f"; {declared.ddl} is declared"
    else:
        column = table.column(silver) if table.exists else None
        whose, owner = "which is declared", "the earlier slices give it" if is_replayed else "the table has"
        also = "" if column is None else f"; {owner} {column.type.ddl}"
    return f"Check the type of column {fault.column!r}: no bad row fits {fault.type}, {whose}{also}."


def rows_text(rows: Iterable[BadRow], *, of_earlier_slices: bool = False) -> str:
    """Return the first bad rows in words.

    The number of further rows is left out, because only a few are looked for.
    """
    texts = [row.text(of_earlier_slices=of_earlier_slices) for row in rows]
    return "; ".join(texts[:SHOWN]) + (" and more" if len(texts) > SHOWN else "")


def message_with_rows(message: str, fault: Fault | None, rows: Sequence[BadRow]) -> str:
    """Return the message of a failure with the place of the row that it is about, and the other bad rows.

    Args:
        message: The message.
        fault: The fault of the row that it is about, if it is known.
        rows: The bad rows.

    Example:
        >>> one, other = (Fault(Reason.NULL_KEY, name) for name in ("a", "b"))
        >>> rows = [BadRow(one, "a.csv", key={"id": 1}), BadRow(other, "a.csv", key={"id": 2})]
        >>> message_with_rows("no key", one, rows)
        "no key, in id=1; further rows: id=2: column 'b' of the business key is null"
    """
    own = [_own_text(row, fault) for row in rows if fault in row.faults]
    others = [row for row in rows if fault not in row.faults]
    first = f"{message}, in {', '.join(own)}" if own else message
    return f"{first}; {'further rows' if own else 'rows'}: {rows_text(others)}" if others else first


def _own_text(row: BadRow, fault: Fault | None) -> str:
    """Return where a row is, and its faults but for one that a message is about."""
    others = [each for each in row.faults if each != fault]
    return f"{row.place} (also {_text(others)})" if others else row.place


def _text(faults: Iterable[Fault], *, of_earlier_slices: bool = False) -> str:
    return ", ".join(fault_text(each, of_earlier_slices=of_earlier_slices) for each in faults)


def _bad_row(row: Row, slice_name: str) -> BadRow:
    key = None if row["key"] is None else json.loads(row["key"])
    place = str(row["file"] or "")
    local = local_path(place) if place else None
    file = place if local is None else str(local)
    fault, *further = Fault.parsed_all(row["fault"])
    return BadRow(
        fault=fault,
        file=file,
        within=file.partition(f"/{slice_name}/")[2],
        key=key or None,
        record=str(row["record"]),
        further=tuple(further),
    )
