"""What is said of a value that does not fit, and what to do about it."""

from __future__ import annotations

import json

import pytest
from tests.unit.schema.faults import MARK, raised

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.schema.fault import Fault, Owner, Reason
from lakewright.transform.fault_words import fault_error, fault_of, fault_remedy, fault_text

REBUILD = "`lakewright rebuild ENTITY`"


def misfit(
    value: str, type_: str = "int", reason: Reason = Reason.NOT_WRITTEN_SO, owner: Owner = Owner.DECLARED
) -> Fault:
    return Fault(reason, "net `price`", type_, value, owner)


@pytest.mark.parametrize(
    ("value", "kind", "unit"),
    [
        ("1714557600", "timestamp", "s` for the column, with which it is in the year 2024"),
        ("1714557600000", "timestamp", "ms` for the column, with which it is in the year 2024"),
        ("1714557600000", "timestamp_ntz", "ms` for the column, with which it is in the year 2024"),
        ("1714557600000000", "timestamp", "us` for the column, with which it is in the year 2024"),
        ("1714557600000000000", "timestamp", "ns` for the column, with which it is in the year 2024"),
        ("1714557600.25", "timestamp", "s` for the column, with which it is in the year 2024"),
        ("1.7145576E12", "timestamp", "ms` for the column, with which it is in the year 2024"),
        ("45352", "date", "excel` for the column, with which it is in the year 2024"),
        ("19844", "date", "days` for the column, with which it is in the year 2024"),
        ("45352", "timestamp", None),
        ("202403", "date", None),
        ("202403", "timestamp", None),
        ("20240501", "date", None),
        ("-5", "date", None),
        ("1714557600000", "date", None),
        ("99999999999999999999999999999999999999", "timestamp", None),
        ("NaN", "timestamp", None),
        ("-Infinity", "date", None),
        ("10:15", "timestamp", None),
        ("", "date", None),
        ("1714557600000", "int", None),
    ],
)
def test_the_unit_is_named_with_which_a_number_is_near_today(value: str, kind: str, unit: str | None) -> None:
    remedy = fault_remedy(misfit(value, kind))
    if unit is None:
        assert "`unit:" not in remedy
    else:
        assert f"`unit: {unit}" in remedy


@pytest.mark.parametrize("reason", [Reason.NO_UNIT, Reason.NOT_WRITTEN_SO, Reason.OUT_OF_RANGE])
def test_a_number_has_its_unit_named_whatever_it_failed_for(reason: Reason) -> None:
    assert "`unit: ms`" in fault_remedy(misfit("1714557600000", "timestamp", reason, Owner.TABLE))


@pytest.mark.parametrize(
    ("owner", "whose", "rebuilds"),
    [
        (Owner.DECLARED, "the type int", False),
        (Owner.TABLE, "the type int of the table", True),
        (Owner.SLICE, "the type int of the column's other values", False),
    ],
)
def test_what_gives_a_column_its_type_is_said_and_is_what_to_change(
    owner: Owner, whose: str, rebuilds: bool
) -> None:
    """The type of a table is not changed by declaring another."""
    fault, rebuild = misfit("seven", owner=owner), Command("rebuild", "orders")
    assert fault_text(fault) == f"column 'net `price`': the value 'seven' doesn't fit {whose}"
    assert (rebuild in Phrase(fault_remedy(fault, rebuild)).parts) is rebuilds
    assert "`datatype`" in fault_remedy(fault)


def test_while_slices_are_applied_again_earlier_ones_give_a_table_its_types() -> None:
    own = "the type that the earlier slices give the column"
    assert own in fault_text(misfit("x", owner=Owner.TABLE), of_earlier_slices=True)
    for owner in (Owner.DECLARED, Owner.SLICE):
        fault = misfit("x", owner=owner)
        assert fault_text(fault, of_earlier_slices=True) == fault_text(fault)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_words(reason: Reason) -> None:
    fault = misfit("1.5", reason=reason)
    assert fault_text(fault)
    assert fault_remedy(fault).startswith("Correct the slice")


@pytest.mark.parametrize(
    "fault",
    [
        misfit("seven"),
        misfit('it\'s "quoted" \\ \n\t', "array<struct<`a b`: int>>", Reason.NOT_JSON, Owner.SLICE),
        misfit("1.5", "int", Reason.INEXACT, Owner.TABLE),
        Fault(Reason.NULL_KEY, "id"),
        Fault(Reason.UNPARSED),
    ],
)
def test_the_fault_that_a_query_raised_is_an_error_that_keeps_it(fault: Fault) -> None:
    found = fault_error(f"job aborted: {raised(fault)} and more")
    assert found is not None
    assert found.message == fault_text(fault)
    assert found.remedy == fault_remedy(fault)
    assert found.details["fault"] == fault.as_json()
    assert (found.details["column"], found.details["type"]) == (fault.column, fault.type)
    assert found.details["sample"] == fault.value
    assert fault_of(found) == fault


@pytest.mark.parametrize("text", ["something else", f"{MARK} {MARK}", '{"reason":"null_key"}'])
def test_other_errors_have_no_fault(text: str) -> None:
    assert fault_error(text) is None
    assert fault_of(LakewrightError(text)) is None


def test_the_relation_and_the_file_of_a_value_are_named() -> None:
    fault = Fault(Reason.NO_UNIT, "at", "timestamp", "1714557600", place="relation 'r', /data/a.csv")
    assert Fault.parsed(json.dumps(fault.as_json())) == fault
    assert fault_text(fault).startswith("relation 'r', /data/a.csv: column 'at': the value '1714557600' ")
    assert "`mode: PERMISSIVE`" in fault_remedy(fault)
