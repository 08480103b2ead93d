"""What a run tells of several slices of an entity that failed: issue 11."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from tests.unit.targets.test_rewind import Stage

from lakewright.cli.render.run import details
from lakewright.errors import Fault, LateSliceError
from lakewright.plan.status import Status
from lakewright.slices.result import ProcessResult
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
    (shown,) = details({}, outcome.error.as_json())
    assert [str(branch.line) for branch in shown.children] == [
        "the slice 2022-01-02 is older",
        "do: Type `lakewright manifest skip orders/2022-01-01`.",
        "do: Type `lakewright manifest skip orders/2022-01-02`.",
    ]
