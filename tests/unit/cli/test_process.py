"""`process`: one entity's slices, without a job."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import FakeApp, call_with

from lakewright.cli.render.run import slice_line
from lakewright.errors import (
    BackdatedError,
    BadRowsError,
    ItemFailed,
    LakewrightError,
    NullKeyError,
    StoreUnavailable,
)
from lakewright.plan.permissions import Permissions
from lakewright.slices.result import ProcessResult, SliceResult
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary

SUMMARY = Summary(
    Strategy.MERGE, records_in_slice=3, inserted=2, updated=1, changed=1, delta_version=4, seconds=1.5
)
DONE = SliceResult("s1", "file:///bronze/s1", SUMMARY)


class Processing(FakeApp):
    """Answers `process` with a result, or raises."""

    answer: ProcessResult | LakewrightError = ProcessResult()

    def process(self, entity: str, slice: str | None = None, **options: Any) -> ProcessResult:
        self.asked.append((entity, slice, options))
        if isinstance(self.answer, LakewrightError):
            raise self.answer
        return self.answer


def app(answer: ProcessResult | LakewrightError) -> Processing:
    made = Processing()
    made.answer = answer
    return made


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (ProcessResult((DONE,)), "SUCCESS", 0),
        (ProcessResult(), "SKIPPED", 0),
        (ProcessResult((DONE,), ("s2",), (NullKeyError("null in id"),), ("s3",)), "FAILED", 1),
        (ProcessResult(errors=(ItemFailed("s1 failed"),), waiting=("s2",)), "BLOCKED", 4),
    ],
)
def test_it_ends_as_its_slices_do(answer: ProcessResult, status: str, code: int) -> None:
    answered = call_with(app(answer), "process", "regions", "-o", "json")
    assert answered.code == code
    document = checked(json.loads(answered.out))
    assert list(document) == [
        "entity",
        "status",
        "slices",
        "waits_for",
        "notes",
        "unrecorded",
        "error",
        "warning",
        "run_id",
    ]
    assert (document["entity"], document["status"]) == ("regions", status)
    assert (document["error"] is None) == (code == 0)


def test_a_slice_has_the_keys_that_are_documented() -> None:
    """Rules of the command line, `metrics`."""
    answered = call_with(app(ProcessResult((DONE,))), "process", "regions", "-o", "json")
    assert checked(json.loads(answered.out))["slices"] == [
        {
            "item": "file:///bronze/s1",
            "slice": "s1",
            "strategy": "merge",
            "records_in_slice": 3,
            "inserted": 2,
            "updated": 1,
            "deleted": 0,
            "unchanged": 0,
            "touched": 0,
            "changed": 1,
            "closed": 0,
            "without_row": 0,
            "inferred_deletes": 0,
            "superseded": 0,
            "outdated": 0,
            "quarantined": 0,
            "delta_version": 4,
            "seconds": 1.5,
            "warnings": [],
        }
    ]


def test_its_page_is_a_line_a_slice() -> None:
    answered = call_with(app(ProcessResult((DONE,), waiting=("s2", "s3"))), "process", "regions")
    assert answered.out.splitlines() == [
        "SUCCESS regions",
        "  s1 merge 3 records: 2 inserted, 1 updated (version 4, 1.5 s)",
        "2 slices left: s2, s3",
        "Done. PROCESSED=1 FAILED=0 WAITING=2 in 0.0 s",
    ]


def test_the_error_of_a_slice_that_fails_alone_names_it() -> None:
    """The message of too many bad rows does not say of which slice."""
    bad = BadRowsError("the slice has more than 2 bad rows", details={"failed_items": ["file:///b/s%202"]})
    answer = ProcessResult(failed=("s 2",), errors=(bad,))
    answered = call_with(app(answer), "process", "regions")
    assert "error: s 2: the slice has more than 2 bad rows" in answered.err
    document = json.loads(call_with(app(answer), "process", "regions", "-o", "json").out)
    assert document["error"]["message"] == "s 2: the slice has more than 2 bad rows"


def test_the_summary_counts_what_could_not_be_recorded_by_itself() -> None:
    """A manifest that can't be written leaves open whether a slice failed: the summary does not say so."""
    full = StoreUnavailable("the manifest can't be written: database or disk is full")
    answer = ProcessResult((DONE,), errors=(full,), waiting=("s3",), unrecorded=("s2",))
    answered = call_with(app(answer), "process", "regions")
    assert answered.code == 1
    assert answered.out.splitlines()[2:] == [
        "The end of the slice s2 could not be recorded; the next run finds out whether it is in the table",
        "1 slice left: s3",
        "Stopped, because the manifest failed. PROCESSED=1 FAILED=0 UNRECORDED=1 WAITING=1 in 0.0 s",
    ]
    document = checked(json.loads(call_with(app(answer), "process", "regions", "-o", "json").out))
    assert document["unrecorded"] == ["s2"]


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        (Summary(Strategy.MERGE, 3, deleted=3, without_row=1), "2 deleted, 1 delete without a row"),
        (Summary(Strategy.HISTORIC, 2, closed=2, without_row=2), "2 deletes without a row"),
        (Summary(Strategy.HISTORIC, 1, inserted=1, deleted=1), "1 inserted, 1 deleted"),
    ],
)
def test_a_delete_of_a_record_without_a_row_is_told_as_such_c3(summary: Summary, told: str) -> None:
    page = call_with(app(ProcessResult((replace(DONE, summary=summary),))), "process", "regions").out
    assert f": {told} (" in page


def test_the_report_has_the_warnings_of_a_slice_and_what_was_left_out() -> None:
    """B9, A11, A12: what was noticed and left is told below the slice."""
    summary = Summary(Strategy.MERGE, 6, inserted=1, superseded=2, outdated=1, quarantined=2)
    done = replace(DONE, summary=summary, warnings=("column 'v' is new",))
    page = call_with(app(ProcessResult((done,))), "process", "regions").out
    assert "1 inserted, 2 superseded in the slice, 1 older than the table, 2 put aside (" in page
    assert "    warning: column 'v' is new" in page


def test_options_reach_the_application() -> None:
    options = ("--strategy", "FULL", "--processing-time", "2022-01-01", "--late", "--allow-data-loss")
    answered = call_with(app(ProcessResult()), "process", "regions", "s1", *options)
    entity, name, given = answered.app.asked[0]
    assert (entity, name, given["strategy"], given["processing_time"]) == (
        "regions",
        "s1",
        "full",
        "2022-01-01",
    )
    assert given["permissions"] == Permissions(allow_late=True, allow_data_loss=True)
    assert given["wait"] is False


def test_a_time_that_lies_too_early_is_wrong_usage() -> None:
    """Rules of entities, "Historic": refused before anything is locked, exit 2."""
    assert call_with(app(BackdatedError("too early")), "process", "regions").code == 2


@pytest.mark.parametrize(
    ("strategy", "version", "told"),
    [
        ("full", 6, "the table is emptied"),
        ("full", 0, "nothing to do"),
        ("full", None, "nothing to do"),
        ("merge", 6, "nothing to do"),
    ],
)
def test_an_empty_slice_of_full_is_said_to_have_emptied_the_table(
    strategy: str, version: int | None, told: str
) -> None:
    metrics = {"slice": "s1", "strategy": strategy, "records_in_slice": 0, "delta_version": version}
    assert told in str(slice_line(metrics))
