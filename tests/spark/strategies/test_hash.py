"""Hashes of values: what changes them and what doesn't.

`processing-strategies.md`, "Common Processing Pipeline": compute source hash, generate primary key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from tests.model.canonical import Entries, row_hash

from lakewright.lake.commit import STRICT
from lakewright.transform.hash import hash_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def hashes(spark: SparkSession, *selections: str, conf: dict[str, str] | None = None) -> list[str]:
    """Return the hash of each row that SQL describes (`select …`), in a strict session."""
    session = spark.newSession()
    for key, value in {**STRICT, **(conf or {})}.items():
        session.conf.set(key, value)
    frames = [session.sql(f"select {selection}") for selection in selections]
    hashed = [
        frame.selectExpr(f"{n} as n", f"{hash_sql(frame.schema.fields)} as hash")
        for n, frame in enumerate(frames)
    ]
    rows = reduce(lambda one, other: one.unionAll(other), hashed).collect()
    return [row.hash for row in sorted(rows, key=lambda row: row.n)]


SAME: Sequence[tuple[str, ...]] = (
    ("1 a, 'x' b", "'x' b, 1 a", "1 A, 'x' B"),
    ("cast(5 as byte) a", "5L a", "cast(5 as decimal(10, 0)) a", "5.00BD a", "5.0BD a"),
    ("0.00000001BD a", "cast('0.0000000100' as decimal(38, 18)) a"),
    ("0D a", "-0D a", "cast(-0.0 as float) a"),
    ("double('NaN') a", "float('NaN') a", "-double('NaN') a"),
    ("1 a", "1 a, cast(null as string) b", "1 a, null c", "1 a, cast(null as array<void>) d"),
    ("'x' a, 'y' b", "'x' collate UNICODE_CI a, 'y' collate UTF8_LCASE b"),
    ("array(true, null) a", "array(true, cast(null as boolean)) a"),
    ("map('x', 1, 'y', 2) a", "map('y', 2L, 'x', 1L) a"),
    (
        "named_struct('x', 1, 'y', 2) a",
        "named_struct('y', 2, 'x', 1) a",
        "named_struct('x', 1, 'y', 2, 'z', null) a",
    ),
    ("array(1, null) a", "array(1L, null) a"),
    ("timestamp'2024-01-01 00:00:00Z' a", "timestamp'2024-01-01 01:00:00+01:00' a"),
)

DIFFERENT = (
    "1 a",
    "1 b",
    "1 `a;`",
    "1 `a\\`",
    "'1' a",
    "1D a",
    "true a",
    "'' a",
    "cast(null as string) a",
    "'ab' a, 'c' b",
    "'a' a, 'bc' b",
    "'abc' a",
    "'x' a, cast(null as string) b",
    "cast(null as string) a, 'x' b",
    "'x' a, '' b",
    "'a ' a",
    "' a' a",
    "'A' a",
    "'a' a",
    "X'61' a",
    "X'' a",
    "parse_json('1') a",
    "parse_json('\"1\"') a",
    "10 a",
    "100 a",
    "1.5BD a",
    "15BD a",
    "-1 a",
    "date'1970-01-02' a",
    "timestamp'1970-01-01 00:00:00.000001Z' a",
    "timestamp_ntz'1970-01-01 00:00:00.000001' a",
    "array(1, 2) a",
    "array(12) a",
    "array(1, null, 2) a",
    "array('1', '2') a",
    "array('12') a",
    "array() a",
    "array(array(1), array(2)) a",
    "array(array(1, 2)) a",
    "map('x', 1) a",
    "map('x', cast(null as int)) a",
    "named_struct('x', 1) a",
    "named_struct('x', cast(null as int)) a",
    "array(named_struct('x', 1)) a",
    "interval '1' day a",
)


@pytest.mark.parametrize("selections", SAME)
def test_equal_rows_have_equal_hashes(spark: SparkSession, selections: tuple[str, ...]) -> None:
    assert len(set(hashes(spark, *selections))) == 1


def test_different_rows_have_different_hashes(spark: SparkSession) -> None:
    found = hashes(spark, *DIFFERENT)
    doubled = {one for one in found if found.count(one) > 1}
    assert [text for text, one in zip(DIFFERENT, found, strict=True) if one in doubled] == []


def test_hashes_do_not_move_with_the_session(spark: SparkSession) -> None:
    """Another time zone means no change."""
    rows = (
        "timestamp'2024-07-01 12:00:00Z' a, date'2024-07-01' b, 1e-7 c, 1e22D d, 0.1D e",
        "timestamp_ntz'2024-03-31 02:30:00' a, 123456789.123456789BD b",
    )
    assert hashes(spark, *rows) == hashes(spark, *rows, conf={"spark.sql.session.timeZone": "Asia/Kathmandu"})


def test_a_hash_stays_what_it_was(spark: SparkSession) -> None:
    """The hash's version is kept in tables: a change here must raise it."""
    row = (
        "1 id, 'größe' name, 1.50BD price, 2.5D ratio, true flag, date'2024-02-29' day, X'00ff' raw, "
        "timestamp'2024-02-29 12:00:00.000001Z' at, array(1, null) list, map('k', 'v') pairs, "
        "named_struct('x', 1, 'y', 'z') inner"
    )
    assert hashes(spark, row) == ["b944ee1d80f2ef5ea2735efc578f6ba620a40c37482a0cfb30e14262973653e1"]


AT = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
ROWS: Sequence[dict[str, Any]] = (
    {"id": 1, "Name": "größe 😀", "price": Decimal("1.50"), "ratio": 2.5, "flag": True, "raw": b"\x00\xff"},
    {"id": -(2**63), "price": Decimal("0.00"), "ratio": math.nan, "flag": False, "Name": ""},
    {"id": 0, "price": Decimal("-99999999.99"), "ratio": -0.0, "day": date(1500, 2, 28), "at": AT},
    {"id": 7, "a;\\b": 1, "ratio": 5e-324, "day": date(9999, 12, 31), "at": datetime(1, 1, 1, tzinfo=UTC)},
    {"id": 8, "ratio": -math.inf, "list": [1, None, -1], "inner": {"x": None, "y": "z"}},
    {
        "id": 6,
        "deep": [
            {"b": True, "d": date(1969, 12, 31), "t": AT, "f": -0.0, "x": b"\x00"},
            None,
            {"b": False},
            {},
        ],
        "codes": Entries({1: [date(2024, 2, 29), None], -5: [], 10: None}),
        "nested": [[[], [True, None]], None, []],
    },
    {"id": 9, "ratio": 0.1, "list": [], "pairs": Entries({"b": 1.5, "é": None, "a": 1e22}), "inner": {}},
)
TYPES = (
    "id bigint, `a;\\b` int, Name string, price decimal(10,2), ratio double, flag boolean, raw binary, "
    "day date, at timestamp, list array<int>, pairs map<string,double>, inner struct<y: string, x: bigint>, "
    "deep array<struct<b: boolean,d: date,t: timestamp,f: double,x: binary>>, codes map<int,array<date>>, "
    "nested array<array<array<boolean>>>"
)


def test_hashes_are_those_of_the_text_that_is_described(spark: SparkSession) -> None:
    """Faults M12: nothing in them is left to a JVM, its version or its settings."""
    session = spark.newSession()
    for key, value in STRICT.items():
        session.conf.set(key, value)
    names = [part.split()[0].strip("`") for part in TYPES.split(", ") if not part.startswith("x:")]
    rows = [
        {name: dict(value) if isinstance(value, Entries) else value for name, value in row.items()}
        for row in ROWS
    ]
    frame = session.createDataFrame([tuple(row.get(name) for name in names) for row in rows], TYPES)
    found = [row[0] for row in frame.selectExpr(hash_sql(frame.schema.fields)).collect()]
    assert found == [row_hash(row) for row in ROWS]
