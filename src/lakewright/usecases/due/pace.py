"""Facts to estimate the time of a step's slices from: their bytes, and the slices processed last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.due.time_left import MOST_KNOWN, TimedSlice
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.discovery import item_id
from lakewright.slices.fold import FEWEST, one_by_one_reason
from lakewright.target_contexts import target_contexts
from lakewright.targets.entity.work import processing_context
from lakewright.usecases.open_project import chain_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.due.plan import Step
    from lakewright.slices.chain import SliceChain


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
    chain = chain_of(app, entity)
    sizes = {item_id(chain.folder.place(each.name)): each.size for each in step.slices}
    context = processing_context(target_contexts(app)(app.workspace), entity, ProcessingOptions())
    is_folded = len(sizes) >= FEWEST and one_by_one_reason(context, entity) is None
    return Pace(sizes, tuple(_known(chain, is_folded=is_folded)))


def _known(chain: SliceChain, *, is_folded: bool) -> Iterator[TimedSlice]:
    for each in chain.order[-MOST_KNOWN:]:
        content = chain.recorded(each.item_id)
        seconds = content.get("metrics", {}).get("seconds")
        if seconds and ("folded" in content) is is_folded:
            yield TimedSlice(int(content.get("fingerprint", {}).get("size") or 0), float(seconds))
