"""What steps do to entities: the rows of their slices, and facts to estimate the time of slices from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.due.time_left import MOST_KNOWN, TimedSlice
from lakewright.errors import LakewrightError
from lakewright.lake.row_counts import read_row_counts
from lakewright.plan.phase import Phase
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.discovery import item_id
from lakewright.slices.fold import FEWEST, one_by_one_reason
from lakewright.strategies.summary import changed_rows
from lakewright.targets.entity.work import processing_context

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.due.plan import Step
    from lakewright.run.result import RunResult
    from lakewright.slices.chain import SliceChain
    from lakewright.usecases.due.take import Taken


@dataclass(frozen=True, slots=True)
class Pace:
    """Facts to estimate the time that slices will take from.

    Attributes:
        sizes: The bytes of the slices, by their items.
        known: The slices that were processed last in the same way, folded or one by one.
    """

    sizes: Mapping[str, int]
    known: tuple[TimedSlice, ...] = ()


def pace_of(app: App, step: Step) -> Pace:
    """Return the facts to estimate the time of a step's slices from.

    Raises:
        LakewrightError: The table or the manifest can't be read.
    """
    entity = app.project.entity(step.subject.name)
    chain = app.chain(entity)
    sizes = {item_id(chain.folder.place(each.name)): each.size for each in step.slices}
    context = processing_context(app.context(), entity, ProcessingOptions())
    is_folded = len(sizes) >= FEWEST and one_by_one_reason(context, entity) is None
    return Pace(sizes, tuple(_known(chain, is_folded=is_folded)))


def _known(chain: SliceChain, *, is_folded: bool) -> Iterator[TimedSlice]:
    for each in chain.order[-MOST_KNOWN:]:
        content = chain.recorded(each.item_id)
        seconds = content.get("metrics", {}).get("seconds")
        if seconds and ("folded" in content) is is_folded:
            yield TimedSlice(int(content.get("fingerprint", {}).get("size") or 0), float(seconds))


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
