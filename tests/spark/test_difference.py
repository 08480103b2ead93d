"""What a preview of an undo and a rebuild count as equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.slices.rewind.difference import compare_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_are_equal_although_the_types_of_columns_changed(spark: SparkSession) -> None:
    """Issue 11: after a change of a type, all rows were "only in old" and "only in new"."""
    before = spark.sql(
        "select * from values (1, '01', '1.5', 1D, '2022-01-01'), (2, '2', '1.257', 2.5D, 'x') "
        "as t(i, n, d, f, t)"
    )
    after = spark.sql(
        "select cast(i as bigint) i, cast(n as int) n, cast(d as decimal(10, 2)) d, cast(f as int) f, "
        "try_cast(t as date) t from values (1, '1', '1.5', 1, '2022-01-01'), (2, '2', '1.26', 2, null) "
        "as t(i, n, d, f, t)"
    )
    found = compare_rows(before, after)
    assert (found.equal, found.gone, found.new) == (1, 1, 1)
    # What a cast would lose is shown as it was.
    assert found.gone_rows == ({"i": "2", "n": "2", "d": "1.257", "f": "2.5", "t": "x"},)
    assert found.new_rows == ({"i": "2", "n": "2", "d": "1.26", "f": "2", "t": None},)
    assert not found.is_none
    assert found.retyped[2].text == "the type of d changes from string to decimal(10,2)"
    apart = compare_rows(spark.sql("select date'2022-01-01' as a"), spark.sql("select 1 as a"))
    assert (apart.equal, apart.gone, apart.new) == (0, 1, 1)  # Spark has no such cast


def test_a_field_that_only_one_of_two_structs_has_counts_as_null(spark: SparkSession) -> None:
    """The preview of an undo called each row changed whose table had got the field by the slice."""
    after = spark.sql(
        "select id, named_struct('city', city) as address, array(named_struct('n', id)) as lines, note "
        "from values (1, 'A', null), (2, 'B', 'b'), (4, null, null) as t(id, city, note)"
    )
    before = spark.sql(
        "select id, named_struct('city', city, 'zip', zip) as address, "
        "array(named_struct('n', id, 'sku', cast(null as int))) as lines, note from values "
        "(1, 'A', null, null), (2, 'B', '10', 'b'), (3, 'C', '11', null), (4, null, null, null) "
        "as t(id, city, zip, note)"
    )
    found = compare_rows(before, after)
    assert (found.equal, found.gone, found.new) == (2, 2, 1)
    assert found.new_rows == ({"id": 2, "address": {"city": "B"}, "lines": [{"n": 2}], "note": "b"},)
    assert found.gone_rows[1] == {
        "id": 3,
        "address": {"city": "C", "zip": "11"},
        "lines": [{"n": 3}],
        "note": None,
    }
    assert [each.name for each in found.retyped] == ["address", "lines"]


def test_fields_of_structs_are_compared_by_name_at_any_depth(spark: SparkSession) -> None:
    """In another order all rows differed; with other names they were compared by position."""
    before = spark.sql(
        "select id, named_struct('a', id, 'in', named_struct('p', 1, 'q', 'x')) as s, "
        "array(named_struct('a', 1, 'b', '2')) as l, map('k', named_struct('a', 1, 'b', '2')) as m "
        "from values (1), (2) as t(id)"
    )
    turned = spark.sql(
        "select id, named_struct('in', named_struct('q', if(id = 1, 'x', 'y'), 'P', 1), 'a', id) as s, "
        "array(named_struct('b', '2', 'a', 1)) as l, map('k', named_struct('b', '2', 'a', 1)) as m "
        "from values (1), (2) as t(id)"
    )
    found = compare_rows(before, turned)
    assert (found.equal, found.gone, found.new, found.retyped) == (1, 1, 1, ())
    assert found.new_rows[0]["s"] == {"a": 2, "in": {"P": 1, "q": "y"}}
    assert found.gone_rows[0]["s"] == {"a": 2, "in": {"P": 1, "q": "x"}}

    renamed = before.selectExpr("id", "named_struct('a', s.a, 'other', s.`in`) as s")
    retyped = spark.sql("select id, array(named_struct('b', 2, 'a', 1L)) as l from values (1), (2) as t(id)")
    by_type = compare_rows(before, retyped)
    assert (by_type.equal, by_type.gone, [each.name for each in by_type.retyped]) == (2, 0, ["l"])
    by_name = compare_rows(before.select("id", "s"), renamed)
    assert (by_name.equal, by_name.gone, by_name.new) == (0, 2, 2)


def test_rows_that_differ_in_last_seen_alone_are_counted_apart(spark: SparkSession) -> None:
    """As often as they occur; a row that goes is shown with its own time."""
    columns = "as t(id, at)"
    before = spark.sql(f"select * from values (1, 10), (1, 10), (2, 10), (3, 10), (4, 10) {columns}")
    after = spark.sql(f"select * from values (1, 10), (1, 20), (2, 20), (3, 10), (5, 20) {columns}")
    found = compare_rows(before, after, seen="AT")
    assert (found.equal, found.seen, found.gone, found.new) == (2, 2, 1, 1)
    assert (found.gone_rows, found.new_rows) == (({"id": 4, "at": 10},), ({"id": 5, "at": 20},))
    whole = compare_rows(before, after)
    assert (whole.equal, whole.seen, whole.gone, whole.new) == (2, 0, 3, 3)


def test_decimals_longs_and_times_are_shown_with_all_their_digits(spark: SparkSession) -> None:
    """Decimals were shown as doubles, and rows whose times differ in microseconds counted as equal."""
    query = (
        "select cast('{0}1' as decimal(18, 8)) as amount, 1.00BD as price, 1.5D as rate, "
        "9007199254740993 as n, array(named_struct('fee', 0.10BD)) as lines, "
        "timestamp'2022-01-01 00:00:00.00000{1}' as at"
    )
    before, after = (spark.sql(query.format("1234567890.1234567", each)) for each in (1, 2))
    found = compare_rows(before, after)
    assert (found.equal, found.gone, found.new) == (0, 1, 1)
    assert found.as_json()["sample_only_before"] == [
        {
            "amount": "1234567890.12345671",
            "price": "1.00",
            "rate": 1.5,
            "n": 9007199254740993,
            "lines": [{"fee": "0.10"}],
            "at": "2022-01-01T00:00:00.000001Z",
        }
    ]
    ((_, shown), _) = found.shown_rows("goes", "comes")
    assert shown.startswith("amount=1234567890.12345671, price=1.00, rate=1.5, n=9007199254740993, lines=[")
