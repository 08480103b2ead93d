"""Folders as sources deliver them: what entities, keys and strategies they give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from obstore.store import MemoryStore
from tests.unit.profiling.landing import csv, json_lines, parquet, profile, write

from lakewright.lake.object_storage import Bucket, ObjectStorage
from lakewright.profiling.places import look_at_place
from lakewright.profiling.profile import profile_places

CUSTOMERS = csv("id,name,zip,born", (f"{n},Ada {n % 9},{n:05},1990-01-{n % 28 + 1:02}" for n in range(40)))
NEXT = csv("id,name,zip,born", (f"{n},Bob {n % 9},{n:05},1990-01-{n % 28 + 1:02}" for n in range(1, 42)))


def orders(day: int) -> bytes:
    numbers = range(day * 100, day * 100 + 50)
    return parquet(
        {
            "order_id": pa.array(numbers, pa.int64()),
            "customer_id": pa.array([n % 7 for n in numbers], pa.int32()),
            "amount": pa.array([n / 4 for n in numbers], pa.float64()),
        }
    )


def lines(day: int) -> str:
    return csv(
        "shop,number,quantity",
        (f"{shop},{day}{number:03},{number % 5}" for shop in "abc" for number in range(9)),
    )


EVENTS = json_lines(
    {"id": f"e{n}", "at": f"2024-05-01T06:{n:02}:00Z", "who": {"name": "Ada", "tags": ["x"]}, "n": n / 2}
    for n in range(30)
)

SHAPES: Mapping[str, tuple[Mapping[str, str | bytes], dict[str, dict[str, Any]]]] = {
    "a full file a day": (
        {"customers/2024-05-01.csv": CUSTOMERS, "customers/2024-05-02.csv": NEXT, "customers/_SUCCESS": ""},
        {
            "customers": {
                "from": "customers/*.csv",
                "key": "id",
                "strategy": "historic",
                "deletes": "snapshot",
                "columns": {"id": "bigint", "born": "date"},
            }
        },
    ),
    "increments in parquet": (
        {f"orders_{day}.parquet": orders(day) for day in range(1, 5)},
        {"orders": {"from": "orders_*.parquet", "key": "order_id", "strategy": "merge"}},
    ),
    "nested json": (
        {"events-2024-05-01.jsonl": EVENTS},
        {
            "events": {
                "from": "events-{date}.jsonl",
                "key": "id",
                "strategy": "merge",
                "columns": {"at": "timestamp"},
            }
        },
    ),
    "a time in the name": (
        {
            "customers-20240501T0600.csv.gz": CUSTOMERS,
            "customers-20240501T1200.csv.gz": NEXT,
            "customers-20240502T0600.csv.gz": NEXT,
        },
        {
            "customers": {
                "from": "customers-{date}.csv.gz",
                "key": "id",
                "strategy": "historic",
                "deletes": "snapshot",
                "columns": {"id": "bigint", "born": "date"},
            }
        },
    ),
    "a folder a day": (
        {
            "2024/05/01/customers.csv": CUSTOMERS,
            "2024/05/02/customers.csv": NEXT,
            "2024/05/01/order_lines.csv": lines(1),
            "2024/05/02/order_lines.csv": lines(2),
        },
        {
            "customers": {
                "from": "{yyyy}/{MM}/{dd}/customers.csv",
                "key": "id",
                "strategy": "historic",
                "deletes": "snapshot",
                "columns": {"id": "bigint", "born": "date"},
            },
            "order_lines": {
                "from": "{yyyy}/{MM}/{dd}/order_lines.csv",
                "key": ["shop", "number"],
                "strategy": "merge",
                "columns": {"number": "bigint", "quantity": "bigint"},
            },
        },
    ),
    "a folder of parts a day": (
        {
            f"orders/2024-05-{day:02}/part-0000{part}-4f.snappy.parquet": orders(2 * day + part)
            for day in (1, 2)
            for part in (0, 1)
        },
        {"orders": {"from": "orders/{date}/*.snappy.parquet", "key": "order_id", "strategy": "merge"}},
    ),
    "files with names that tell nothing": (
        {"people/north.csv": "id,name\n1,Ada\n", "people/south.csv": "id,name\n2,Bob\n"},
        {"people": {"from": "people/*.csv", "key": "id", "strategy": "merge", "columns": {"id": "bigint"}}},
    ),
    "one file of each": (
        {"a/customers.csv": CUSTOMERS, "a/shops.csv": "code,town\n01,Bonn\n02,Ulm\n"},
        {
            "customers": {
                "from": "a/customers.csv",
                "key": "id",
                "strategy": "merge",
                "columns": {"id": "bigint", "born": "date"},
            },
            "shops": {"from": "a/shops.csv", "key": "code", "strategy": "merge"},
        },
    ),
    "files of others beside dated ones": (
        {"2024-05-01.csv": "id,x\n1,2\n", "codes.csv": "code,y\na,2\n"},
        {
            "landing": {
                "from": "{date}.csv",
                "key": "id",
                "strategy": "merge",
                "columns": {"id": "bigint", "x": "bigint"},
            },
            "codes": {"from": "codes.csv", "key": "code", "strategy": "merge", "columns": {"y": "bigint"}},
        },
    ),
    "names of which one begins with another": (
        {"a_2024-05-01.csv": "id,x\n1,2\n", "a_b_2024-05-01.csv": "id,y\n1,2\n"},
        {
            "a": {
                "from": "a_{date}.csv",
                "key": "id",
                "strategy": "merge",
                "columns": {"id": "bigint", "x": "bigint"},
            },
            "a_b": {
                "from": "a_b_{date}.csv",
                "key": "id",
                "strategy": "merge",
                "columns": {"id": "bigint", "y": "bigint"},
            },
        },
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_folder_gives_the_entities_that_a_person_would_declare(shape: str, tmp_path: Path) -> None:
    files, expected = SHAPES[shape]
    found = profile(write(tmp_path / "landing", files))
    settings = {each.name: {**each.settings} for each in found.entities}
    for each in settings.values():
        each["from"] = each["from"].removeprefix(f"{tmp_path}/landing/")
    assert settings == expected


def test_an_object_store_gives_the_same(tmp_path: Path) -> None:
    files, expected = SHAPES["a folder of parts a day"]
    store, storage = MemoryStore(), ObjectStorage()
    for name, content in files.items():
        store.put(f"landing/{name}", content if isinstance(content, bytes) else content.encode())
    storage._buckets["s3", "acme"] = Bucket("s3://acme", cast("Any", store), "")
    (entity,) = profile_places([look_at_place("s3://acme/landing", storage)]).entities
    place = f"s3://acme/landing/{expected['orders']['from']}"
    assert entity.settings == {**expected["orders"], "from": place}
    (single,) = profile_places(
        [look_at_place(next(iter(entity.group.slices)).files[0].path, storage)]
    ).entities
    assert single.key.columns == ("order_id",)


def test_rubbish_is_left_out_and_said(tmp_path: Path) -> None:
    broken = orders(1)[:-3]
    folder = write(
        tmp_path,
        {
            ".DS_Store": b"\0\1",
            "_SUCCESS": "",
            "README.md": "# Read me",
            "a.csv.part": "id\n1",
            "all.zip": b"PK\x03\x04",
            "broken.parquet": broken,
            "empty.csv": "",
            "image.csv": bytes(range(256)) * 4,
            "notes.txt": "Dear all,\nthe files are late.\n",
            "pretty.json": '[\n  {"id": 1},\n  {"id": 2}\n]\n',
            "packed.csv.zst": b"\x28\xb5\x2f\xfd",
            "table/_delta_log/00000000000000000000.json": "{}",
            "table/part-0.parquet": orders(1),
        },
    )
    found = profile(folder)
    assert not found.entities
    assert {each.name: str(each.reason.code) for each in found.skipped} == {
        ".DS_Store": "hidden",
        "_SUCCESS": "hidden",
        "README.md": "not_data",
        "a.csv.part": "unfinished",
        "all.zip": "archive",
        "broken.parquet": "damaged",
        "empty.csv": "no_content",
        "image.csv": "binary",
        "notes.txt": "not_data",
        "pretty.json": "spans_lines",
        "packed.csv.zst": "compression",
        "table/": "delta_table",
    }


def test_a_cut_file_is_damaged(tmp_path: Path) -> None:
    write(tmp_path, {"a.csv.gz": CUSTOMERS})
    file = tmp_path / "a.csv.gz"
    file.write_bytes(file.read_bytes()[:-40])
    (skipped,) = profile(tmp_path).skipped
    assert skipped.reason.code == "damaged"


def test_airports(airports: Path) -> None:
    found = profile(airports)
    assert {each.name: (each.key.columns, each.strategy, each.deletes) for each in found.entities} == {
        "countries": (("id",), "historic", "snapshot"),
        "runways": (("id",), "historic", "snapshot"),
    }
    assert not found.questions


@pytest.fixture
def airports() -> Path:
    return Path(__file__).parents[3] / "examples" / "airports" / "data"
