"""Which of an entity's slices are ready for an application, which wait, and what holds them back.

Source: `processing-manifest.md`, "State"; that one held slice holds back only what must come after it is
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application
from lakewright.slices.discover import natural_key

__all__ = ["Pending", "sort_out"]


@dataclass(frozen=True, slots=True)
class Pending:
    """An entity's items that aren't done for an application, in order of their slices.

    Attributes:
        ready: May be processed now, one after the other.
        waiting: Must wait for `held`.
        held: The first item that holds back what comes after it, or None.
        late: Names of ready slices that are older than one already processed.
    """

    ready: tuple[Item, ...] = ()
    waiting: tuple[Item, ...] = ()
    held: Item | None = None
    late: frozenset[str] = frozenset()


def slice_name(item: Item) -> str:
    """Return the name of an item's slice."""
    noted = None if item.new is None else item.new.note.get("slice")
    return str(noted) if noted is not None else item.item_id.rstrip("/").rpartition("/")[2]


def sort_out(
    items: Iterable[Item], application: Application, *, takeable: frozenset[str] = frozenset()
) -> Pending:
    """Return what is to be done about an entity's items on behalf of an application.

    Args:
        items: Of one entity, in any order.
        application: On whose behalf.
        takeable: Ids of locked items whose holder is gone: they count as ready, to be taken over.
    """
    ready: list[Item] = []
    waiting: list[Item] = []
    held: Item | None = None
    late: set[str] = set()
    ordered = sorted(items, key=lambda item: natural_key(slice_name(item)))
    done = [n for n, item in enumerate(ordered) if item.verdict(application) is Verdict.PROCESSED]
    last_done = max(done, default=-1)
    for position, item in enumerate(ordered):
        verdict = item.verdict(application)
        if verdict is Verdict.LOCKED and item.item_id in takeable:
            verdict = Verdict.READY
        if verdict is Verdict.READY and held is not None:
            waiting.append(item)
        elif verdict is Verdict.READY:
            ready.append(item)
            if position < last_done:
                late.add(item.item_id)
        elif held is None and item.holds_back(application):
            held = item
    return Pending(tuple(ready), tuple(waiting), held, frozenset(late))
