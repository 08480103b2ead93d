"""Hashes of values: what changes them and what doesn't.

`processing-strategies.md`, "Common Processing Pipeline": compute source hash, generate primary key.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from tests.model.canonical import Entries, Single, row_hash

from lakewright.lake.commit import STRICT
from lakewright.schema.canonical import HASH_VERSION, KNOWN_VERSIONS, CanonicalForm
from lakewright.schema.spark import columns_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "Europe/Berlin"
VERSIONS = sorted(KNOWN_VERSIONS)


def hashes(
    spark: SparkSession, *selections: str, version: str, conf: dict[str, str] | None = None
) -> list[str]:
    """Return the hash of each row that SQL describes (`select …`), in a strict session."""
    session = strict(spark, conf)
    frames = [session.sql(f"select {selection}") for selection in selections]
    form = CanonicalForm(version, ZONE)
    hashed = [
        frame.selectExpr(f"{n} as n", f"{form.hash_sql(columns_of(frame.schema))} as hash")
        for n, frame in enumerate(frames)
    ]
    rows = reduce(lambda one, other: one.unionAll(other), hashed).collect()
    return [row.hash for row in sorted(rows, key=lambda row: row.n)]


def strict(spark: SparkSession, conf: dict[str, str] | None = None) -> SparkSession:
    session = spark.newSession()
    for key, value in {**STRICT, **(conf or {})}.items():
        session.conf.set(key, value)
    return session


ALWAYS_SAME: Sequence[tuple[str, ...]] = (
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

SAME: Sequence[tuple[str, ...]] = (
    *ALWAYS_SAME,
    ("5 a", "5D a", "5.00BD a", "cast(5 as float) a", "5e0 a"),
    ("0 a", "-0D a", "cast(-0.0 as float) a", "0.00BD a"),
    ("0.1D a", "0.10BD a", "cast(0.1 as float) a"),
    ("1e-10D a", "0.0000000001BD a", "cast('1e-10' as float) a"),
    ("12345678.9D a", "12345678.90BD a"),
    ("1e19D a", "10000000000000000000BD a", "cast(1e19 as float) a"),
    ("-9223372036854775808 a", "-9223372036854775808D a", "cast(-9223372036854775808 as float) a"),
    ("1234567890123456768 a", "1234567890123456768D a"),
    ("1e38D a", "99999999999999999999999999999999999999D a"),
    # Case 8 of what files did to us: whole numbers that become doubles, times that gain a zone.
    ("5 qty, timestamp_ntz'2024-07-01 14:00:00' at", "5.0D qty, timestamp'2024-07-01 12:00:00Z' at"),
    ("timestamp_ntz'2024-03-31 02:30:00' a", "timestamp'2024-03-31 01:30:00Z' a"),
    ("timestamp_ntz'2024-10-27 02:30:00' a", "timestamp'2024-10-27 00:30:00Z' a"),
    # Case 9: objects and lists without anything in them.
    (
        "1 a",
        "1 a, null meta",
        "1 a, named_struct('x', cast(null as int)) meta",
        "1 a, named_struct('x', named_struct('y', array(), 'z', map())) meta",
        "1 a, array() meta",
        "1 a, map() meta",
        "1 a, cast(null as variant) meta",
        "1 a, parse_json('null') meta",
        "1 a, parse_json('{}') meta",
        "1 a, parse_json('[]') meta",
    ),
    ("named_struct('x', 1, 'y', named_struct('z', null)) a", "named_struct('x', 1, 'y', array()) a"),
    (
        "array(named_struct('x', 1), null) a",
        "array(named_struct('x', 1, 'y', array()), named_struct('x', null, 'y', array())) a",
    ),
    ("array(null) a", "array(array()) a"),
    ("array(array(1), null) a", "array(array(1), array()) a"),
    ("map('x', array(1), 'y', null) a", "map('x', array(1), 'y', array()) a"),
    ("array(5, 0) a", "array(5D, -0D) a", "array(5.0BD, 0.00BD) a"),
    ("map(5, 1.5D) a", "map(5D, 1.50BD) a"),
    (
        """parse_json('{"a": [1.50, -0.0, 10, 2.0], "b": {"c": "1.50 \\\\" 2.0"}}') a""",
        """parse_json('{"b": {"c": "1.50 \\\\" 2.0"}, "a": [1.5, 0, 10.00, 2]}') a""",
    ),
)

ALWAYS_DIFFERENT = (
    "1 a",
    "1 b",
    "1 `a;`",
    "1 `a\\`",
    "'1' a",
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
    "array(1, 2) a",
    "array(12) a",
    "array(1, null, 2) a",
    "array('1', '2') a",
    "array('12') a",
    "array(array(1), array(2)) a",
    "array(array(1, 2)) a",
    "map('x', 1) a",
    "map('x', cast(null as int)) a",
    "named_struct('x', 1) a",
    "array(named_struct('x', 1)) a",
    "interval '1' day a",
)

DIFFERENT = {
    "2": (
        *ALWAYS_DIFFERENT,
        "1D a",
        "array() a",
        "timestamp_ntz'1970-01-01 00:00:00.000001' a",
        "named_struct('x', cast(null as int)) a",
    ),
    "3": (
        *ALWAYS_DIFFERENT,
        "timestamp_ntz'1970-01-01 00:00:00.000001' a",
        "-1.5D a",
        "double('NaN') a",
        "double('Infinity') a",
        "-double('Infinity') a",
        "1e-300D a",
        "2e-300D a",
        "1e300D a",
        "0.1D a",
        "cast(cast(0.1 as float) as double) a",
        "9007199254740992D a",
        "9007199254740993 a",
        "9223372036854775807 a",
        "9223372036854775808D a",
        "array(null) a",
        "map('x', 1, 'y', null) a",
        """parse_json('{"a": "1.50"}') a""",
        """parse_json('{"a": "1.5"}') a""",
        """parse_json('{"a": 1.5}') a""",
        """parse_json('{"a": 100}') a""",
        "parse_json('[null]') a",
    ),
}


@pytest.mark.parametrize(
    ("version", "groups"),
    [pytest.param("2", ALWAYS_SAME, marks=pytest.mark.nightly), ("3", SAME)],
    ids=["version 2", "version 3"],
)
def test_equal_rows_have_equal_hashes(
    spark: SparkSession, version: str, groups: Sequence[tuple[str, ...]]
) -> None:
    found = iter(hashes(spark, *(text for group in groups for text in group), version=version))
    by_group = [{text: next(found) for text in group} for group in groups]
    assert [group for group in by_group if len({*group.values()}) > 1] == []


@pytest.mark.parametrize("version", [pytest.param("2", marks=pytest.mark.nightly), "3"])
def test_different_rows_have_different_hashes(spark: SparkSession, version: str) -> None:
    found = hashes(spark, *DIFFERENT[version], version=version)
    doubled = {one for one in found if found.count(one) > 1}
    assert [text for text, one in zip(DIFFERENT[version], found, strict=True) if one in doubled] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_hashes_do_not_move_with_the_session(spark: SparkSession, version: str) -> None:
    """Another time zone means no change."""
    rows = (
        "timestamp'2024-07-01 12:00:00Z' a, date'2024-07-01' b, 1e-7 c, 1e22D d, 0.1D e",
        "123456789.123456789BD b",
    )
    moved = hashes(spark, *rows, version=version, conf={"spark.sql.session.timeZone": "Asia/Kathmandu"})
    assert hashes(spark, *rows, version=version) == moved


GOLDEN = {
    "2": "b944ee1d80f2ef5ea2735efc578f6ba620a40c37482a0cfb30e14262973653e1",
    "3": "cb748b568e43668292253612e25c4aaab07cfd9161da3895cace358f30bd8aef",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_hash_stays_what_it_was(spark: SparkSession, version: str) -> None:
    """The hash's version is kept in tables: a change here must raise it."""
    row = (
        "1 id, 'größe' name, 1.50BD price, 2.5D ratio, true flag, date'2024-02-29' day, X'00ff' raw, "
        "timestamp'2024-02-29 12:00:00.000001Z' at, array(1, null) list, map('k', 'v') pairs, "
        "named_struct('x', 1, 'y', 'z') inner"
    )
    assert hashes(spark, row, version=version) == [GOLDEN[version]]


AT = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
ROWS: Sequence[dict[str, Any]] = (
    {"id": 1, "Name": "größe 😀", "price": Decimal("1.50"), "ratio": 2.5, "flag": True, "raw": b"\x00\xff"},
    {"id": -(2**63), "price": Decimal("0.00"), "ratio": math.nan, "flag": False, "Name": ""},
    {"id": 0, "price": Decimal("-99999999.99"), "ratio": -0.0, "day": date(1500, 2, 28), "at": AT},
    {"id": 7, "a;\\b": 1, "ratio": 5e-320, "day": date(9999, 12, 31), "at": datetime(1, 1, 1, tzinfo=UTC)},
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
    {"pairs": Entries(), "deep": [], "whole": {"n": {"m": [], "f": None}}},
    {"deep": [None, {}], "whole": {"n": {"m": [[]], "f": 0.5}}, "codes": Entries({3: []})},
)
TYPES = {
    "id": "bigint",
    "a;\\b": "int",
    "Name": "string",
    "price": "decimal(10,2)",
    "big": "decimal(38,0)",
    "fine": "decimal(38,38)",
    "wide": "decimal(38,18)",
    "small": "smallint",
    "ratio": "double",
    "single": "float",
    "flag": "boolean",
    "raw": "binary",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "list": "array<int>",
    "pairs": "map<string,double>",
    "inner": "struct<y: string, x: bigint>",
    "deep": "array<struct<b: boolean,d: date,t: timestamp,f: double,x: binary>>",
    "codes": "map<int,array<date>>",
    "nested": "array<array<array<boolean>>>",
    "whole": "struct<n: struct<m: array<array<int>>, f: float>>",
    "steps": "array<struct<at: timestamp_ntz, size: decimal(6,3)>>",
}
BORDERS: Sequence[float] = (
    *(0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 1e-3, math.nextafter(1e-3, 0), 1e-18, 1e-38, 1e-40),
    *(1e7, math.nextafter(1e7, 0), math.nextafter(1e7, 1e8), 12345678.9, 2.0**53, 2.0**53 - 0.5, 2.0**53 + 2),
    *(2.0**63, math.nextafter(2.0**63, 0), -(2.0**63), math.nextafter(-(2.0**63), -math.inf), 1e19, 1e22),
    *(1e37, 1e38, 1e300, 1.7976931348623157e308, 2.2250738585072014e-308, 0.30000000000000004),
)
TIMES = (
    *(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1893, 4, 1, 0, 3)),
    *(datetime(2024, 3, 31, 2), datetime(2024, 3, 31, 2, 30), datetime(2024, 3, 31, 3)),
    *(datetime(2024, 10, 27, 1, 59, 59, 999999), datetime(2024, 10, 27, 2, 30), datetime(2024, 10, 27, 3)),
)


class Drawn:
    """Values of every type of `TYPES`, drawn with an eye for borders; many of them are absent."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def row(self) -> dict[str, Any]:
        names = self.random.sample(sorted(TYPES), self.random.randint(0, 6))
        return {name: value for name in names if (value := self.value(TYPES[name])) is not None}

    def value(self, kind: str) -> Any:
        if self.random.random() < 0.15:
            return None
        name, _, rest = kind.partition("<")
        inner = rest.removesuffix(">")
        if name == "array":
            return [self.value(inner) for _ in range(self.random.choice((0, 0, 1, 2, 3)))]
        if name == "struct":
            return {each: self.value(kind) for each, kind in _parts(inner)}
        if name == "map":
            key, _, value = inner.partition(",")
            keys = {self.value(key) for _ in range(self.random.choice((0, 1, 2)))} - {None}
            return Entries({each: self.value(value) for each in keys})
        return self.scalar(name)

    def scalar(self, kind: str) -> Any:
        random = self.random
        if kind.startswith("decimal"):
            digits, scale = map(int, kind[8:-1].split(","))
            size = random.choice((0, 1, digits // 2, digits))
            zeros = 10 ** random.randint(0, size)
            number = random.randrange(10**size) // zeros * zeros
            return Decimal((random.choice((0, int(number > 0))), tuple(map(int, str(number))), -scale))
        made = {
            "bigint": lambda: random.choice((random.randint(-(2**63), 2**63 - 1), random.randint(-9, 9))),
            "int": lambda: random.choice((-(2**31), 2**31 - 1, 0, 5, 100)),
            "smallint": lambda: random.choice((-(2**15), 0, 5, 100)),
            "string": lambda: random.choice(("", " ", "a;b", "größe 😀", "~", "1.n", "null", "x" * 300)),
            "double": self.double,
            "float": lambda: Single(random.choice((self.near(3e38), 0.1, 1.1e-20, 16777216.0, 33554434.5))),
            "boolean": lambda: random.choice((True, False)),
            "binary": lambda: random.randbytes(random.choice((0, 1, 40))),
            "date": lambda: random.choice((date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31))),
            "timestamp": lambda: self.time().replace(tzinfo=UTC),
            "timestamp_ntz": self.time,
        }
        return made[kind]()

    def double(self) -> float:
        way = self.random.random()
        if way < 0.4:
            return self.random.choice(BORDERS)
        if way < 0.7:
            return self.random.randrange(-(10**9), 10**9) / self.random.choice((1, 10, 100, 10**6))
        return self.near(2.0**63)

    def near(self, limit: float) -> float:
        """A number below a limit; of those above 2^63, Java writes some with a digit too many."""
        found = self.random.choice((1, -1)) * self.random.random() * 10 ** self.random.uniform(-30, 18.9)
        return float(found) if abs(found) < limit else 0.0

    def time(self) -> datetime:
        if self.random.random() < 0.5:
            return self.random.choice(TIMES)
        return datetime(1600, 1, 1) + timedelta(microseconds=self.random.randrange(600 * 366 * 86400 * 10**6))


def _parts(text: str) -> list[tuple[str, str]]:
    """The fields of a struct: commas inside brackets belong to a field's type."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(f"{text},"):
        depth += letter in "<("
        depth -= letter in ">)"
        if letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    pairs = (each.partition(":") for each in found)
    return [(name.strip(), kind.strip()) for name, _, kind in pairs]


def test_hashes_are_those_of_the_text_that_is_described(spark: SparkSession) -> None:
    """Faults M12: nothing in them is left to a JVM, its version or its settings."""
    drawn = Drawn(7)
    rows = [*ROWS, *({"ratio": each} for each in BORDERS), *({"local": each} for each in TIMES)]
    rows += [drawn.row() for _ in range(600)]
    types = ", ".join(f"`{name}` {kind}" for name, kind in TYPES.items())
    frame = strict(spark).createDataFrame(
        [tuple(_plain(row.get(name)) for name in TYPES) for row in rows], types
    )
    forms = [CanonicalForm(version, ZONE) for version in VERSIONS]
    found = frame.selectExpr(*(form.hash_sql(columns_of(frame.schema)) for form in forms)).collect()
    wrong = [
        (form.version, row)
        for row, both in zip(rows, found, strict=True)
        for form, one in zip(forms, both, strict=True)
        if one != row_hash(row, form.version, ZONE)
    ]
    assert wrong == []


def test_rows_are_equal_by_digest_exactly_if_their_hashes_are(spark: SparkSession) -> None:
    drawn = Drawn(11)
    rows = [*ROWS, *({"ratio": each} for each in BORDERS), *({"local": each} for each in TIMES)]
    rows += [{"id": 1, "small": 5}, {"id": 5, "small": 1}, {"id": 1}, {"small": 1}, {"Name": ""}]
    rows += [{name: drawn.value(kind)} for _ in range(20) for name, kind in TYPES.items()]
    rows += [drawn.row() for _ in range(300)]
    types = ", ".join(f"`{name}` {kind}" for name, kind in TYPES.items())
    frame = strict(spark).createDataFrame(
        [tuple(_plain(row.get(name)) for name in TYPES) for row in rows], types
    )
    form, columns = CanonicalForm(HASH_VERSION, ZONE), columns_of(frame.schema)
    digest = form.digest_of((field, f"`{field.name}`") for field in columns)
    found = [(row[0], tuple(row[1:])) for row in frame.selectExpr(form.hash_sql(columns), *digest).collect()]
    assert len({one for one, _ in found}) < len(rows)  # some are equal
    assert len({*found}) == len({one for one, _ in found}) == len({other for _, other in found})


def _plain(value: Any) -> Any:
    """A value as Spark takes it."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return float(value) if isinstance(value, Single) else value
