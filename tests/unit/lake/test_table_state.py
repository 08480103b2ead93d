"""What the state of a table says of its partitions."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewright.lake.delta_log import DECLARED_LENGTH, VECTORS, TableState, state_of
from lakewright.spec.models.fields import Field, parse_type

DAY = date(2022, 1, 1)
AT = datetime(2022, 1, 1, 5, tzinfo=UTC)


def table(partitions: set[tuple[Any, ...]] | None, **types: str) -> TableState:
    """Return the state of a table that is partitioned by columns of these types."""
    columns = tuple(Field(name=name, type=parse_type(text)) for name, text in types.items())
    known = None if partitions is None else frozenset(partitions)
    return TableState(True, columns=columns, partition_columns=tuple(types), partitions=known)


KNOWN = table({(DAY, "eu"), (DAY, None)}, day="date", region="string")


@pytest.mark.parametrize(
    ("state", "partition", "expected"),
    [
        (KNOWN, {"day": DAY, "region": "eu"}, True),
        (KNOWN, {"region": "eu", "day": DAY}, True),
        (KNOWN, {"day": DAY, "region": "us"}, False),
        (KNOWN, {"day": DAY}, True),
        (KNOWN, {"day": date(2022, 1, 2)}, False),
        (KNOWN, {"month": DAY}, None),
        (table(None, day="date"), {"day": DAY}, None),
        (table({(3,)}, n="smallint"), {"n": 3}, True),
        (table({(True,)}, b="boolean"), {"b": False}, False),
        (table({(AT.astimezone(ZoneInfo("UTC")),)}, at="timestamp"), {"at": AT}, True),
    ],
)
def test_a_state_tells_whether_there_are_files_of_a_partition(
    state: TableState, partition: dict[str, Any], expected: bool | None
) -> None:
    assert state.has_files(partition) is expected


@pytest.mark.parametrize(
    ("kept", "type_", "asked"),
    [
        (0.10000000149011612, "float", 0.1),
        (Decimal("2.6"), "decimal(5,1)", Decimal("2.55")),
        ("ab  ", "char(4)", "ab"),
        ("abc", "varchar(3)", "abcdef"),
        (None, "string", ""),
        ("2022-01-01", "string", DAY),
    ],
)
def test_a_partition_whose_value_the_table_keeps_in_another_form_is_unknown_not_absent(
    kept: Any, type_: str, asked: Any
) -> None:
    """An overwrite of a partition that is taken for absent would append its rows again."""
    assert table({(kept,)}, p=type_).has_files({"p": asked}) is None


def test_partitions_of_texts_of_a_declared_length_are_unknown(tmp_path: Path) -> None:
    """Spark pads them: the log has `DE   ` where `DE` was given."""
    field = pa.field("c", pa.string(), metadata={DECLARED_LENGTH: "char(5)"})
    schema = pa.schema([field, ("n", pa.int64())])
    write_deltalake(tmp_path, pa.table({"c": ["DE   "], "n": [1]}, schema=schema), partition_by="c")
    state = state_of(DeltaTable(tmp_path))
    assert state.partition_columns == ("c",)
    assert state.has_files({"c": "DE"}) is None


def test_the_digest_of_a_partition_changes_with_its_files_and_the_columns_only(tmp_path: Path) -> None:
    """Dirtiness of a target that reads one partition: a running total is clean once it is built."""

    def write(day: int, n: int, **options: Any) -> TableState:
        rows = pa.table({"day": [date(2022, 1, day)], "n": [n], **options})
        write_deltalake(tmp_path, rows, partition_by="day", mode="append", schema_mode="merge")
        return state_of(DeltaTable(tmp_path))

    days = [{"day": date(2022, 1, day)} for day in (1, 2)]
    first = write(1, 1)
    one, both = first.digest_of(days[:1]), first.digest_of(days)
    assert one is not None
    second = write(2, 1)
    assert second.digest_of(days[:1]) == one
    assert second.digest_of(days) not in (None, one, both)
    third = write(1, 2)
    assert third.digest_of(days[:1]) not in (None, one)
    assert third.digest_of(days[1:]) == second.digest_of(days[1:])
    wider = write(3, 1, more=["x"])
    assert wider.digest_of(days[1:]) not in (None, third.digest_of(days[1:]))


@pytest.mark.parametrize(
    ("files", "type_", "asked"),
    [({(AT,): ("a",)}, "timestamp", AT), (None, "date", DAY), ({("x",): ("a",)}, "string", "")],
)
def test_a_partition_whose_files_may_be_others_has_no_digest(files: Any, type_: str, asked: Any) -> None:
    state = replace(table(set(), p=type_), files=files)
    assert state.digest_of([{"p": asked}]) is None


def test_files_whose_rows_may_be_marked_as_deleted_do_not_tell_rows(tmp_path: Path) -> None:
    write_deltalake(
        tmp_path,
        pa.table({"c": ["DE"], "n": [1]}),
        partition_by="c",
        configuration={"delta.enableDeletionVectors": "true"},
    )
    log = tmp_path / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    features = {"minReaderVersion": 3, "minWriterVersion": 7}
    marked = {**features, "readerFeatures": [VECTORS], "writerFeatures": [VECTORS]}
    lines = [{"protocol": marked} if "protocol" in each else each for each in lines]
    log.write_text("\n".join(map(json.dumps, lines)))
    state = state_of(DeltaTable(tmp_path))
    assert state.has_files({"c": "DE"}) is True
    assert state.digest_of([{"c": "DE"}]) is None
