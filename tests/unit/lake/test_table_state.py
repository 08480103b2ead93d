"""What the state of a table says of its partitions."""

from __future__ import annotations

import json
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


def test_a_partition_whose_rows_may_be_marked_as_deleted_has_files(tmp_path: Path) -> None:
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
    assert state_of(DeltaTable(tmp_path)).has_files({"c": "DE"}) is True
