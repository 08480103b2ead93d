"""What was done to entities: their slices, the rows in them, and the rows that changed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.lake.row_counts import read_row_counts
from lakewright.plan.phase import Phase
from lakewright.strategies.summary import changed_rows

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.run.result import RunResult
    from lakewright.usecases.due.take import Taken


def work_done(app: App, results: Iterable[RunResult], taken: Iterable[Taken]) -> list[dict[str, Any]]:
    """Return a row for each entity of which runs processed slices, or steps applied slices without a run.

    Its keys are `entity`, `slices`, `rows_in`, `changed`, and `rows_now`: None if the table's log does not
    have the number.
    """
    slices: dict[str, list[Any]] = {}
    for each in taken:
        if each.slices:
            slices.setdefault(each.step.subject.name, []).extend(each.slices)
    targets = (target for result in results for target in result.targets())
    for target in targets:
        if target.phase is Phase.BUILD and target.kind == "entity" and target.metrics.get("slices"):
            # A target whose entity only an instance knows stands for it.
            entity = app.project.processed_entities.get(target.name, target.name)
            slices.setdefault(entity, []).extend(target.metrics["slices"])
    return [
        {
            "entity": name,
            "slices": len(found),
            "rows_in": sum(int(each.get("records_in_slice") or 0) for each in found),
            "changed": sum(map(changed_rows, found)),
            "rows_now": _rows_now(app, name),
        }
        for name, found in slices.items()
    ]


def _rows_now(app: App, entity: str) -> int | None:
    with suppress(LakewrightError):  # a number for people, which must not fail what is done
        silver = app.project.entity(entity).places(app.project.lake).silver
        counts = read_row_counts(app.lake, silver, 1)
        return counts[-1].rows if counts else None
    return None
