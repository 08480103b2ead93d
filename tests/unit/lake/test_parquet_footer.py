"""What footers tell."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lakewright.lake.parquet_footer import count_rows, misread_columns, schema_fingerprint

# They bring no types.
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")


def written(path: Path, columns: dict[str, Any], metadata: dict[str, str] | None = None) -> Path:
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path


SPARKS = "org.apache.spark.sql.parquet.row.metadata"


def test_files_of_the_same_columns_have_the_same_mark(tmp_path: Path) -> None:
    one = written(tmp_path / "1", {"id": [1], "v": [["a", None]]}, {"pandas": "x"})
    same = written(tmp_path / "2", {"id": list(range(9)), "v": [["b"]] * 9})
    others = [
        written(tmp_path / "3", {"id": [1], "w": [["a"]]}),
        written(tmp_path / "4", {"v": [["a"]], "id": [1]}),
        written(tmp_path / "5", {"id": ["1"], "v": [["a"]]}),
        written(tmp_path / "6", {"id": [1], "v": [["a"]]}, {SPARKS: "1"}),
        written(tmp_path / "7", {"id": [1], "v": [["a"]]}, {SPARKS: "2"}),
        written(tmp_path / "8", {"id": pa.array([1], pa.int32()), "v": [["a"]]}),
    ]

    assert schema_fingerprint(one) == schema_fingerprint(same)
    assert len({schema_fingerprint(path) for path in (one, *others)}) == len(others) + 1
    assert [count_rows(path) for path in (one, same)] == [1, 9]


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b"", lambda b: b[:4] + b[-8:]])
@pytest.mark.parametrize("question", [schema_fingerprint, count_rows, misread_columns])
def test_a_broken_footer_is_an_error(tmp_path: Path, damage: Any, question: Any) -> None:
    path = written(tmp_path / "1", {"id": [1]})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=str(path)):
        question(path)


def test_every_bit_of_a_footer_may_be_wrong(tmp_path: Path) -> None:
    """Whatever is wrong, there is an answer or an error of ours, and no loop."""
    path = written(tmp_path / "1", {"id": [1, 2], "v": ["a", "b"]}, {"k": "v"})
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    for position in range(len(whole) - 8 - length, len(whole)):
        for value in (0x00, 0xFF, whole[position] ^ 0x10):
            path.write_bytes(whole[:position] + bytes([value]) + whole[position + 1 :])
            for question in (schema_fingerprint, count_rows, misread_columns):
                with contextlib.suppress(ValueError):
                    question(path)


def test_columns_with_nanoseconds_are_known(tmp_path: Path) -> None:
    kinds = {
        "id": pa.int64(),
        "utc": pa.timestamp("ns", tz="UTC"),
        "inner": pa.struct([("x", pa.int64()), ("list", pa.list_(pa.string()))]),
        "local": pa.timestamp("ns"),
        "coarse": pa.timestamp("us"),
        "time": pa.time64("ns"),
    }
    columns = {name: pa.array([None], kind) for name, kind in kinds.items()}
    assert misread_columns(written(tmp_path / "1", columns)).nanoseconds == {"utc": True, "local": False}
    inside = {**columns, "deep": pa.array([None], pa.list_(pa.timestamp("ns")))}
    assert misread_columns(written(tmp_path / "2", inside)).nanoseconds is None
    many = {f"c{n}": pa.array([None], pa.timestamp("ns")) for n in range(300)}
    assert misread_columns(written(tmp_path / "3", many)).nanoseconds == dict.fromkeys(many, False)


def test_columns_without_a_type_are_known(tmp_path: Path) -> None:
    columns = {
        "id": pa.array([1]),
        "none": pa.nulls(1),
        "inner": pa.array([{"none": None, "x": 1}]),
        "list": pa.array([[]], pa.list_(pa.null())),
        "number": pa.array([None], pa.int32()),
    }
    found = misread_columns(written(tmp_path / "1", columns))
    assert found.typeless == {"none"}
    assert found.typed == {"id", "inner", "list", "number"}
