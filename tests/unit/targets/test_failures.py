"""What a run tells of several slices of an entity that failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

from tests.unit.targets.test_rewind import Stage

from lakewright.cli.render.run import details
from lakewright.errors import Fault, LateSliceError, SliceError, StorageUnavailable, StoreUnavailable
from lakewright.plan.status import Status
from lakewright.slices.result import ProcessResult, SliceReport
from lakewright.targets.entity import phases


def test_each_failed_slice_has_a_line_to_type(tmp_path: Path) -> None:
    """Two slices failed, and the footer showed the remedy of the first."""
    names = ("2022-01-01", "2022-01-02")
    errors = tuple(
        LateSliceError(f"the slice {name} is older", remedy=f"Type `lakewright manifest skip orders/{name}`.")
        for name in names
    )
    result = ProcessResult(failed=names, errors=errors)
    with mock.patch.object(phases, "process_pending", return_value=result):
        outcome = phases._process(Stage(tmp_path).work)
    assert outcome.status is Status.FAILED
    assert outcome.error == Fault(
        "the slice 2022-01-01 is older\nthe slice 2022-01-02 is older",
        remedy="Type `lakewright manifest skip orders/2022-01-01`.\n"
        "Type `lakewright manifest skip orders/2022-01-02`.",
        code="late_slice",
    )
    (shown,) = details({}, outcome.error)
    assert [str(each) for each in shown.below] == [
        "the slice 2022-01-02 is older",
        "do: Type `lakewright manifest skip orders/2022-01-01`.",
        "do: Type `lakewright manifest skip orders/2022-01-02`.",
    ]


def test_the_error_of_a_slice_names_it_alone_or_among_others() -> None:
    bad = [
        SliceError(
            f"the slice has {number} bad rows", details={"failed_items": [f"file:///lake/o/{number}.csv"]}
        )
        for number in (1, 2)
    ]
    assert phases._as_one_fault(bad[:1]).message == "1.csv: the slice has 1 bad rows"
    assert (
        phases._as_one_fault(bad).message
        == "1.csv: the slice has 1 bad rows\n2.csv: the slice has 2 bad rows"
    )


def test_a_slice_whose_end_could_not_be_recorded_is_not_said_to_be_ready() -> None:
    """The disk of the manifest was full after the commit; the log said that the slice stays ready."""
    full = StoreUnavailable("the manifest can't grow: the disk is full")
    report = SliceReport("orders", "1.csv", "file:///lake/o/1.csv", error=full, is_failed=False)
    assert "has an end that could not be recorded, which the next run finds out: the manifest" in str(report)
    other = replace(report, error=StorageUnavailable("there is no folder"))
    assert "was not processed and stays ready" in str(other)


def test_each_slice_that_validate_fails_has_the_commands_to_type(tmp_path: Path) -> None:
    """Two files of 0 bytes: the footer said to resolve and skip, of the first, without a command."""
    stage = Stage(tmp_path)
    for name in ("2022-01-01", "2022-01-02"):
        (tmp_path / "lake/bronze/orders" / name).write_text("")
    outcome = phases._validate(stage.work)
    assert outcome.status is Status.SUCCESS_WITH_ERRORS
    assert outcome.error is not None
    assert outcome.error.message.splitlines() == [
        "the slice 2022-01-01 has 0 bytes",
        "the slice 2022-01-02 has 0 bytes",
    ]
    for name, told in zip(("2022-01-01", "2022-01-02"), str(outcome.error.remedy).splitlines(), strict=True):
        resolve, skip = (f"`lakewright manifest {verb} orders/{name}`" for verb in ("resolve", "skip"))
        assert told == (
            f"Deliver it again. Then {resolve}. Otherwise resolve and skip it: {resolve}, then {skip}."
        )
    bronze = (tmp_path / "lake/bronze/orders").as_uri()
    assert outcome.error.details["failed_items"] == [f"{bronze}/2022-01-01", f"{bronze}/2022-01-02"]
