"""What footers tell."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lakewright.lake.parquet_footer import count_rows, schema_fingerprint

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
@pytest.mark.parametrize("question", [schema_fingerprint, count_rows])
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
            for question in (schema_fingerprint, count_rows):
                with contextlib.suppress(ValueError):
                    question(path)
