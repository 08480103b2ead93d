"""How a slice is undone: to which version its table goes back, and what becomes of the slices after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.slices.discover import slice_name
from lakewright.slices.rewind.known_slices import name_of
from lakewright.strategies.summary import deleted_rows, plain_names
from lakewright.strategies.table_properties import HISTORY_PROPERTY

if TYPE_CHECKING:
    from lakewright.lake.commit import Commit
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.item import Item
    from lakewright.slices.applied import AppliedSlice

__all__ = ["UndoPlan"]


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """How a slice is undone.

    Attributes:
        item: The item of the slice.
        undone: The slice as the table holds it; None if it changed nothing, so that the table stays.
        state: The table as it was observed.
        base: The version that the table goes back to; None if the slice made its first commit.
        since: The slices that were applied from then on, itself among them: each once, in the order of their
            last processing.
        earlier: Those of them that the slice's commit holds, too, and that were applied before it.
        skipped: The items of those of them that were skipped since they were processed: the table has them no
            more afterwards.
        is_requeued: Whether the slice, and those after it, are to be processed again by the next run.
        foreign: Commits of other writers that are lost with it.
        kept: The slices that the table still holds in that version, in order.
        version: The version that the slice made by itself; None if no version shows what it changed.
        unseen: Why none shows it, as a clause; None if one does.
        repeated: Names of slices that were applied after it more than once. Applied once, they must give the
            table as it is.
    """

    item: Item
    undone: AppliedSlice | None
    state: TableState
    base: int | None = None
    since: tuple[AppliedSlice, ...] = ()
    earlier: tuple[AppliedSlice, ...] = ()
    is_requeued: bool = False
    foreign: tuple[Commit, ...] = ()
    kept: tuple[AppliedSlice, ...] = ()
    version: int | None = None
    unseen: str | None = None
    repeated: tuple[str, ...] = ()
    skipped: tuple[Item, ...] = ()

    @property
    def slice(self) -> str:
        """Name of the slice."""
        return slice_name(self.item)

    @property
    def others(self) -> tuple[AppliedSlice, ...]:
        """The slices of `since` without the slice, and without those that are skipped."""
        left_out = {self.item.item_id, *(item.item_id for item in self.skipped)}
        return tuple(each for each in self.since if each.item_id not in left_out)

    @property
    def skipped_names(self) -> list[str]:
        """Names of the slices that are left out."""
        return [slice_name(item) for item in self.skipped]

    @property
    def later(self) -> tuple[AppliedSlice, ...]:
        """The slices that were applied after it, each once."""
        earlier = {each.item_id for each in self.earlier}
        return tuple(each for each in self.others if each.item_id not in earlier)

    @property
    def replayed(self) -> tuple[AppliedSlice, ...]:
        """The slices that are applied again before the table changes."""
        return self.earlier if self.is_requeued else self.others

    @property
    def requeued(self) -> tuple[AppliedSlice, ...]:
        """The slices that are ready again: the slice, and those after it."""
        own = () if self.undone is None else (self.undone,)
        return (*own, *self.later) if self.is_requeued else ()

    @property
    def is_checked(self) -> bool:
        """Whether the slices, each applied once, must first be shown to give the table as it is.

        Slices that are requeued are applied once, as they are then, and those before them were.
        """
        return bool(self.replayed and self.repeated) and not self.is_requeued

    @property
    def has_past(self) -> bool:
        """Whether versions of `history_from` are in the first commit that goes, which a rebuild made."""
        return self.base is None and HISTORY_PROPERTY in self.state.properties

    @property
    def counts(self) -> dict[str, int]:
        """What the slice inserted, updated and deleted, as its commit says; empty if it does not."""
        metrics = plain_names({} if self.undone is None else self.undone.content.get("metrics") or {})
        counts = {name: metrics.get(name) or 0 for name in ("inserted", "updated")}
        counts["deleted"] = deleted_rows(metrics)
        return {name: count for name, count in counts.items() if count}

    @property
    def rewound_ids(self) -> frozenset[str]:
        """The items whose slices the table does not hold afterwards, or holds by other commits."""
        return frozenset((self.item.item_id, *(each.item_id for each in self.since)))

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `undo -o json` prints it."""
        return {
            "slice": self.slice,
            "item": self.item.item_id,
            "version": self.state.version,
            "back_to": self.base,
            "counts": self.counts,
            "replayed": [name_of(each) for each in self.replayed],
            "repeated": list(self.repeated) if self.is_checked else [],
            "requeued": [name_of(each) for each in self.requeued],
            "skipped": self.skipped_names,
            "foreign_commits": [commit.version for commit in self.foreign],
        }
