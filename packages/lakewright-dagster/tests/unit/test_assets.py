"""Assets, checks and outcomes follow from Lakewright's documents, without Dagster."""

from __future__ import annotations

from typing import Any

import pytest

from lakewright_dagster.documents import PlannedAsset, PlannedCheck, chosen_job, outcomes_of, outline_of


def target(name: str, kind: str, *reads: str, entity: str | None = None) -> dict[str, Any]:
    return {"name": name, "kind": kind, "reads": list(reads), "entity": entity}


OUTLINE = outline_of(
    [
        target("fit", "validate", "orders"),
        target("of_orders", "entity", entity="orders"),
        target("totals", "relation", "of_orders"),
        target("report", "file", "totals"),
        target("same.rows", "compare", "of_orders", "totals"),
        target("lonely", "verify"),
    ]
)


def test_targets_that_make_something_are_assets_and_those_that_check_are_checks_of_what_they_read() -> None:
    assert OUTLINE.assets == (
        PlannedAsset("of_orders", "entity", (), "orders"),
        PlannedAsset("totals", "relation", ("of_orders",)),
        PlannedAsset("report", "file", ("totals",)),
        PlannedAsset("lonely", "verify", ()),
    )
    assert [each for each in OUTLINE.checks if each.name != "verify"] == [
        PlannedCheck("same_rows", "totals", "same.rows", ("of_orders",))
    ]
    assert [each.asset for each in OUTLINE.checks if each.name == "verify"] == [
        each.target for each in OUTLINE.assets
    ]
    assert OUTLINE.guards == ("fit",)
    assert OUTLINE.built_from("of_orders") == ("of_orders", "totals", "report")


@pytest.mark.parametrize(
    ("jobs", "wanted", "chosen"),
    [
        (["all"], None, "all"),
        (["a", "b"], "b", "b"),
        (["a", "b"], None, None),
        (["a"], "c", None),
        ([], None, None),
    ],
)
def test_a_job_is_chosen_if_it_is_the_only_one_or_is_named(
    jobs: list[str], wanted: str | None, chosen: str | None
) -> None:
    if chosen is None:
        with pytest.raises(ValueError, match="give job="):
            chosen_job(jobs, wanted)
    else:
        assert chosen_job(jobs, wanted) == chosen


def result(status: str, *, is_reached: bool = True, **metrics: Any) -> dict[str, Any]:
    error = {"message": "no", "remedy": "mend it"} if status == "FAILED" else None
    given = {"name": "t", "status": status, "reasons": ["why"], "seconds": 1.5, "metrics": metrics}
    return {**given, "error": error, "is_reached": is_reached}


SLICE = {
    **{
        "slice": "a.csv",
        "records_in_slice": 3,
        "inserted": 1,
        "updated": 2,
        "changed": 1,
        "closed": 0,
        "deleted": 0,
    },
    **{"delta_version": 7, "seconds": 1.0},
}


@pytest.mark.parametrize(
    ("phases", "status", "verified", "numbers", "error"),
    [
        (
            {"BUILD": result("SUCCESS", slices=[SLICE]), "VERIFY": result("SUCCESS")},
            "SUCCESS",
            "SUCCESS",
            (3, 2),
            None,
        ),
        ({"CREATE": result("SUCCESS"), "BUILD": result("SKIPPED")}, "SUCCESS", None, None, None),
        ({"BUILD": result("FAILED")}, "FAILED", None, None, "no. Do: mend it"),
        (
            {"BUILD": result("SUCCESS"), "VERIFY": result("FAILED")},
            *("SUCCESS", "FAILED", None, "no. Do: mend it"),
        ),
        (
            {"BUILD": result("SUCCESS"), "VERIFY": result("SKIPPED", is_reached=False)},
            "SUCCESS",
            None,
            None,
            None,
        ),
    ],
)
def test_a_target_s_outcome_is_made_of_all_phases_that_the_run_has_come_to(
    phases: dict[str, Any],
    status: str,
    verified: str | None,
    numbers: tuple[int, int] | None,
    error: str | None,
) -> None:
    instance = {"phases": [{"phase": name, "targets": [each]} for name, each in phases.items()]}
    found = outcomes_of({"run_id": "r", "instances": [instance]})["t"]
    assert (found.status, found.verified, found.error) == (status, verified, error)
    told = (found.metadata["rows_in"], found.metadata["changed"]) if "rows_in" in found.metadata else None
    assert told == numbers
    assert found.is_made == (status != "FAILED")


def test_a_target_that_no_run_came_to_has_no_outcome() -> None:
    unreached = {"phase": "BUILD", "targets": [result("SKIPPED", is_reached=False)]}
    assert outcomes_of({"run_id": "r", "instances": [{"phases": [unreached]}]}) == {}
