"""Numbers of JSON, of which Spark infers another type in each slice."""

from __future__ import annotations

from decimal import Decimal

from tests.spark.strategies.bench import SmallLake, entity
from tests.spark.strategies.test_bad_rows import put

COLUMNS = [
    {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]},
    {"name": "price", "datatype": "decimal(10,2)"},
    {"name": "total", "datatype": "decimal(38,18)"},
    {"name": "code", "datatype": "string"},
]
JSON = {"format": "json"}
LONG = "12345678901234567890.123456789012345678"


def test_equal_numbers_are_no_change_and_keep_their_digits(lake: SmallLake) -> None:
    """ "Common Processing Pipeline", Compute source hash: a number is the same in a slice of whole ones."""
    things = entity("historic", columns=COLUMNS, settings=JSON)
    whole = '{"id": 2, "price": 10, "total": 1, "code": 8, "rate": 2, "lines": [{"q": 1}]}'
    other = (
        '{"id": ID, "price": 10.5, "total": LONG, "code": 7, "rate": 1.5, "lines": [{"q": 1}, {"q": 0.5}]}'
    )
    other = other.replace("LONG", LONG)
    slices = [f"{other.replace('ID', '1.0')}\n{whole}\n", whole, other.replace("ID", "1")]
    for number, content in enumerate(slices, 1):
        put(lake, things, f"s{number}.json", content)
    result = lake.process(things)
    assert result.error is None, result.error
    for name in ("s2.json", "s3.json"):
        (summary,) = (each.summary for each in result.slices if each.name == name)
        assert (summary.inserted, summary.changed) == (0, 0), name
    rows = lake.rows(things, "id", "price", "total", "code")
    assert rows == [
        (1, Decimal("10.50"), Decimal(LONG), "7"),
        (2, Decimal("10.00"), Decimal(1), "8"),
    ]


def test_a_table_with_hashes_of_the_inferred_types_keeps_them(lake: SmallLake) -> None:
    """Other hashes would make each record that arrives a change."""
    columns = COLUMNS[:2]
    before = entity("historic", columns=columns)
    lake.load(before, "s1", [{"id": 1, "price": 10.5}, {"id": 2, "price": 9.0}])
    things = entity("historic", columns=columns, settings=JSON)
    put(lake, things, "s2", '{"id": 1, "price": 10.5}\n{"id": 2, "price": 9.0}\n')
    result = lake.process(things)
    assert result.error is None, result.error
    assert [each.summary.changed for each in result.slices] == [0]
    (told,) = result.notes
    assert told.startswith("numbers of price are read as Spark infers them from one slice")
    assert told.endswith("; `lakewright rebuild things` builds it again")
