"""Conversion against a plain-Python model, on drawn values and on both sides of each border, in one query.

Source: the rules of reading, "What fits".
"""

from __future__ import annotations

import math
import random
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.model.convert import MISFIT, converted

from lakewright.lake.commit import DEPRECATED, STRICT
from lakewright.schema.conversion import convert
from lakewright.schema.fault import Fault
from lakewright.schema.rules import Unit, ValueRules
from lakewright.spec.models.type_text import parse_sql_type

ROWS = 120

_NUMBERS = [0, 1, -1, 5, 127, 128, -128, -129, 32767, 32768, 2**31 - 1, 2**31, -(2**31) - 1, 2**24, 2**24 + 1]
_NUMBERS += [
    2**53,
    2**53 + 1,
    2**53 + 2,
    2**54 + 2,
    2**62 + 512,
    2**63 - 1,
    -(2**63),
    2**63 - 1024,
    1714557600000,
]
_DAYS = ["0001-01-01", "9999-12-31", "2024-02-29", "2023-02-29", "1969-12-31", "1582-10-10", "0000-01-01"]
_TIMES = ["2024-03-31T02:30:00", "2024-10-27 02:30:00", "2024-05-01 00:00:00", "2024-05-01T10:15", "10:15"]
_TIMES += ["2024-05-01T10:15:00Z", "2024-05-01T10:15:00+02:00", "2024-05-01 10:15:00 Europe/Berlin", "T10:15"]
_TIMES += ["2024-05-01T10:15:00.123456", "2024-05-01T10:15:00.1234567", "2024-05-01T10:15:00.1234560"]
_TIMES += ["2024-05-01T24:00:00", "2024-05-01T23:59:60", "20240501T101500Z", "2024-05-01T10:15:00+0200"]
_TIMES += [
    "2024-05-01T10:15:00+02",
    "2024-05-01T00:00:00Z",
    "2024-5-1",
    "202403",
    "2024-05-01 ",
    "2024-05-01T",
]
_TIMES += ["2024-05-01T10:15:00-19:00", "2024-13-01", "2024-05-01T10:15:00 UTC", "0001-01-01T00:00:00+14:00"]
_WORDS = [
    "",
    " ",
    "NaN",
    "nan",
    "Infinity",
    "-Infinity",
    "Inf",
    "infinity",
    "true",
    "TRUE",
    "t",
    "Yes",
    "n",
    "0",
]
_WORDS += [
    "1",
    "2",
    "12D",
    "7f",
    "0x1p3",
    "1_000",
    "٣",
    "12٣",
    " 12",
    "12 ",
    "\t5",
    "5\n",
    "+5",
    "-0",
    "--5",
    "1.",
    ".",
]
_WORDS += [
    ".5",
    "5.00",
    "1e3",
    "1E-2",
    "1.5e1",
    "1e400",
    "-1e400",
    "1e-400",
    "100e-2",
    "12300e-2",
    "0.1",
]
_WORDS += ["0.30000000000000004", "9" * 38, "9" * 39, "1." + "1" * 18, "1." + "1" * 19, "1.10" + "0" * 20]
_WORDS += [
    "9223372036854775807",
    "9223372036854775808",
    "45352",
    "1714557600000",
    "1714557600.25",
    "null",
    "J",
]


@pytest.fixture(scope="module")
def strict_spark(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for key, value in STRICT.items():
        if key not in DEPRECATED:
            session.conf.set(key, value)
    return session


def _texts(draw: random.Random) -> list[str]:
    alphabet = "0123456789+-.eE: TZ"
    made = ["".join(draw.choices(alphabet, k=draw.randrange(1, 12))) for _ in range(30)]
    made += [f"{draw.uniform(-1e6, 1e6):.{draw.randrange(0, 12)}f}" for _ in range(20)]
    made += [str(draw.randrange(-(2**65), 2**65) >> draw.randrange(66)) for _ in range(20)]
    made += [_time(draw).isoformat(draw.choice(" T")) + draw.choice(["", "Z", "+05:30"]) for _ in range(20)]
    return [*_WORDS, *_DAYS, *_TIMES, *made]


def _time(draw: random.Random) -> datetime:
    second = draw.randrange(-62135596800, 253402300799)
    return datetime(1970, 1, 1) + timedelta(seconds=second, microseconds=draw.choice([0, 1, 500, 123456]))


def _doubles(draw: random.Random) -> list[float]:
    fixed = [
        0.0,
        -0.0,
        0.1,
        0.5,
        1.5,
        5.0,
        1e7,
        12345678.0,
        12345678.5,
        1e-3,
        1e-4,
        1e22,
        1e300,
        2.0**53,
        2.0**63,
    ]
    fixed += [
        -(2.0**63),
        2.0**63 - 1024,
        0.1 + 0.2,
        math.nan,
        math.inf,
        -math.inf,
        1.0,
        2.5,
        100.25,
        3.4e38,
        3.5e38,
    ]
    return [*fixed, *(round(draw.uniform(-1e9, 1e9), draw.randrange(0, 6)) for _ in range(60))]


def _values(kind: str, draw: random.Random) -> list[Any]:
    """Return values of a type, those at its borders first."""
    if kind == "string":
        return _texts(draw)
    if kind == "double":
        return _doubles(draw)
    if kind == "float":
        found = [0.0, 0.1, 0.5, 5.0, 16777216.0, 1e10, 3.0e38, math.nan, math.inf, 1.5, -2.25, 1.0]
        return [struct.unpack("f", struct.pack("f", each))[0] for each in found]
    bits = {"tinyint": 7, "int": 31, "bigint": 63}.get(kind)
    if bits is not None:
        found = [each for each in _NUMBERS if -(2**bits) <= each < 2**bits]
        return [*found, *(draw.randrange(-(2**bits), 2**bits) >> draw.randrange(bits) for _ in range(40))]
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").split(",")[1])
        top = int(kind.split("(")[1].split(",", maxsplit=1)[0])
        whole = [0, 1, -1, 5, 10**top - 1, 1 - 10**top, 150, 12345, 10**scale, 5 * 10**scale, 2**53 + 1]
        whole = [each for each in whole if abs(each) < 10**top]
        whole += [draw.randrange(-(10**top), 10**top) // 10 ** draw.randrange(top) for _ in range(40)]
        return [Decimal(f"{each}e-{scale}") for each in whole]
    if kind == "boolean":
        return [True, False]
    moments = [datetime.fromisoformat(each) for each in ("0001-01-01", "9999-12-31T23:59:59.999999")]
    moments += [
        datetime.fromisoformat(each) for each in ("2024-03-31T02:30", "2024-10-27T02:30", "2024-07-01")
    ]
    moments += [_time(draw) for _ in range(30)]
    if kind == "date":
        return [each.date() for each in moments]
    return [each.replace(tzinfo=UTC) if kind == "timestamp" else each for each in moments]


_SOURCES = ["string", "tinyint", "int", "bigint", "decimal(5,2)", "decimal(20,0)", "decimal(38,18)", "float"]
_SOURCES += ["double", "boolean", "date", "timestamp", "timestamp_ntz"]
_TARGETS = [*_SOURCES, "smallint", "decimal(38,0)", "decimal(3,3)", "varchar(5)", "char(5)"]


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return found == expected or (math.isnan(found) and math.isnan(expected))
    if isinstance(expected, str) and expected == "E":
        return isinstance(found, str) and "E" in found
    return type(found) is type(expected) and found == expected


def _compared(
    spark: SparkSession, rules: ValueRules, seed: int, sources: list[str], targets: list[str]
) -> int:
    """Compare all pairs of types in one query; return the number of values."""
    draw = random.Random(seed)
    values = {kind: _values(kind, draw) for kind in sources}
    count = max(len(each) for each in values.values())
    columns = {kind: f"c{number}" for number, kind in enumerate(sources)}
    rows = [[number, *(each[number % len(each)] for each in values.values())] for number in range(count)]
    schema = ", ".join(["n int", *(f"{name} {kind}" for kind, name in columns.items())])
    frame = spark.createDataFrame(rows, schema)
    pairs = [(one, other) for one in sources for other in targets]
    made = ["n"]
    for number, (one, other) in enumerate(pairs):
        found = convert(columns[one], parse_sql_type(one), parse_sql_type(other), column="c", rules=rules)
        shown = f"unix_micros({found.sql})" if other == "timestamp" else found.sql
        made += [f"{shown} as v{number}", f"({found.fault or 'null'}) as f{number}"]
    wrong, compared = [], 0
    for row in frame.selectExpr(*made).collect():
        for number, (one, other) in enumerate(pairs):
            value = values[one][row["n"] % len(values[one])]
            expected = converted(value, parse_sql_type(one), parse_sql_type(other), rules)
            found, fault = row[f"v{number}"], row[f"f{number}"]
            compared += 1
            if other == "timestamp" and isinstance(expected, datetime):
                expected = (expected - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
            if expected is MISFIT:
                misfit = None if fault is None else Fault.parsed(fault)
                if found is not None or misfit is None or misfit.type != parse_sql_type(other).ddl:
                    wrong.append((one, other, value, "misfit", found, fault))
            elif fault is not None or not _same(found, expected):
                wrong.append((one, other, value, expected, found, fault))
    assert not wrong, "\n".join(map(str, wrong[:40])) + f"\n{len(wrong)} of {compared}"
    return compared


def test_the_sql_agrees_with_a_plain_converter(strict_spark: SparkSession) -> None:
    compared = _compared(strict_spark, ValueRules(is_bounded=True), 1, _SOURCES, _TARGETS)
    assert compared > 10_000


_COUNTED = ["string", "int", "bigint", "decimal(38,18)", "double"]


BY_DAY = {Unit.SECONDS, Unit.EXCEL}
"""The other units differ from the first one by a factor."""


@pytest.mark.parametrize(
    "unit", [unit if unit in BY_DAY else pytest.param(unit, marks=pytest.mark.nightly) for unit in Unit]
)
def test_numbers_stand_for_times_in_the_declared_unit(strict_spark: SparkSession, unit: Unit) -> None:
    _compared(strict_spark, ValueRules(unit=unit), 2, _COUNTED, ["date", "timestamp", "timestamp_ntz"])


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_times_without_an_offset_are_those_of_the_zone(strict_spark: SparkSession, zone: str | None) -> None:
    times = ["string", "date", "timestamp", "timestamp_ntz"]
    _compared(strict_spark, ValueRules(zone=zone), 3, times, times)


def test_rounding_and_other_texts_of_booleans_are_declared(strict_spark: SparkSession) -> None:
    rules = ValueRules(rounds=True, booleans={"J": True, "N": False})
    _compared(strict_spark, rules, 4, ["string", "decimal(38,18)", "double"], ["decimal(5,2)", "boolean"])
