"""What another program restored a table to, and the order in which the plan has the slices then. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.due.test_settled import commit, opened

from lakewright.due.facts import Foreign
from lakewright.due.plan import Action, Code
from lakewright.due.planner import make_plan
from lakewright.usecases.due.decide import decide
from lakewright.usecases.due.observe import observe

S1, S2, S3 = (f"2022-01-0{number}.csv" for number in (1, 2, 3))


def fold(table: Path) -> None:
    """Let the first commit hold the third slice, too, which was applied once more since."""
    logs = [table / "_delta_log" / f"{version:020}.json" for version in (1, 3)]
    (first, *actions), (last, *_) = (list(map(json.loads, log.read_text().splitlines())) for log in logs)
    own, other = (json.loads(each["commitInfo"]["userMetadata"]) for each in (first, last))
    shared = {name: own.pop(name) for name in ("item", "revision", "fingerprint", "processingTime")}
    again = {name: other[name] for name in shared}
    own["items"] = [{**shared, "number": 1}, {**again, "number": 1}]
    first["commitInfo"]["userMetadata"] = json.dumps(own)
    logs[0].write_text("\n".join(map(json.dumps, [first, *actions])))


def test_after_a_restore_a_plan_has_slices_in_the_order_in_which_they_were_applied_last(lake: Path) -> None:
    """A plan had those that the restored version holds before all others, so that it dropped their order."""
    table = lake / "lake/silver/e0"
    fold(table)
    commit(table, operation="RESTORE", operationParameters={"version": "1"})
    app = opened(lake)
    (entity,) = observe(app, ["e0"]).entities
    assert [each.name for each in entity.table.slices] == [S1, S2, S3]
    assert [each.name for each in app.chain(app.project.entity("e0")).order] == [S1, S2, S3]
    # What it has reverted is applied again if it is dropped.
    assert entity.table.held[1] == Foreign(4)
    app.make_store()
    decide(app, "e0/version 4", "drop", author="a", reason="r")
    (step,) = make_plan(observe(app, ["e0"])).steps
    assert (step.action, step.reason.code, step.base) == (Action.REPLAY, Code.FOREIGN_ROWS, 1)
    assert [each.name for each in step.slices] == [S2, S3]
