from __future__ import annotations

from urllib.parse import unquote

import pytest

from lakewright.errors import SpecError
from lakewright.lake.partition import (
    PartitionRange,
    canonical_partition,
    expand_selection,
    partition_folder,
    partition_sql,
)
from lakewright.spec.models.fields import PartitionField, parse_type

DAY = PartitionField(name="day", type=parse_type("date"), granularity="P1M")
CODE = PartitionField(name="Code", type=parse_type("string"))
HOUR = PartitionField(name="hour", type=parse_type("timestamp"), granularity="PT1H")
NUMBER = PartitionField(name="n", type=parse_type("bigint"))


def test_every_combination_of_values_is_meant() -> None:
    months = PartitionRange(start="2022-01-15", end="2022-02-20")
    selection: dict[str, PartitionRange | tuple[str, ...]] = {"code": ("x", "y", "x"), "day": months}
    assert expand_selection([DAY, CODE], selection) == (
        {"day": "2022-01-01", "Code": "x"},
        {"day": "2022-01-01", "Code": "y"},
        {"day": "2022-02-01", "Code": "x"},
        {"day": "2022-02-01", "Code": "y"},
    )
    assert expand_selection([DAY], {}) == ()
    steps = {"n": PartitionRange(start="1", end="9", step="4")}
    assert [each["n"] for each in expand_selection([NUMBER], steps)] == ["1", "5", "9"]


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        (DAY, "2022-03-17", "2022-03-01"),
        (DAY, "2022-03-17T10:00:00", "2022-03-01"),
        (HOUR, "2022-03-17T10:59:00+02:00", "2022-03-17 08:00:00"),
        (NUMBER, " 007 ", "7"),
        (CODE, " a/b ", " a/b "),
    ],
)
def test_equal_partitions_have_equal_texts(field: PartitionField, text: str, expected: str) -> None:
    assert canonical_partition([field], {field.name.upper(): text}) == {field.name: expected}


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ({"days": "2022-01-01"}, "'days' is not a partition column"),
        ({"day": "soon"}, "partition column day: 'soon' is not a date"),
    ],
)
def test_what_is_no_partition_says_why(partition: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        canonical_partition([DAY], partition)
    with pytest.raises(SpecError, match=r"partition column day: .* is after"):
        expand_selection([DAY], {"day": PartitionRange(start="2022-02-01", end="2022-01-01")})


@pytest.mark.parametrize("text", ["a", "a/b", "a=b", "100%", "it's", "ü ö", "{x}", "", "\\", "#?*"])
def test_a_folder_names_a_partition_and_nothing_else(text: str) -> None:
    folder = partition_folder({"c": text})
    assert "/" not in folder
    assert not {"*", "?", "{", "["} & set(folder)
    name, _, value = folder.partition("=")
    assert (name, "" if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)) == ("c", text)


def test_values_stay_values_in_sql() -> None:
    partition = {"day": "2022-01-01", "Code": "x' OR '1'='1", "n": "7"}
    assert partition_sql([DAY, CODE, NUMBER], partition) == (
        "`day` = DATE'2022-01-01' AND `Code` = 'x\\' OR \\'1\\'=\\'1' AND `n` = CAST('7' AS bigint)"
    )
    assert partition_sql([DAY], {}) is None
