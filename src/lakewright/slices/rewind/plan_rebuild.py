"""The plan of a rebuild: all processed slices, or those from one on, under today's declaration.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import missing_files
from lakewright.manifest.item import Verdict
from lakewright.manifest.record import format_instant
from lakewright.slices.discover import natural_key, slice_name
from lakewright.slices.rewind.plan import (
    Arriving,
    RewindPlan,
    in_place,
    lasting_commits,
    plan_replay,
    with_times,
)

if TYPE_CHECKING:
    from lakewright.slices.chain import AppliedSlice, SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity, Strategy

__all__ = ["RebuildPlan", "RebuildStart", "plan_rebuild"]


@dataclass(frozen=True, slots=True)
class RebuildStart:
    """Where a rebuild starts: with the first slice, a named one, or the first of a time.

    Attributes:
        slice: Name of the first slice that is applied again; what was in the table before it stays.
        time: The processing time from which on slices are applied again.
    """

    slice: str | None = None
    time: datetime | None = None

    @property
    def words(self) -> str:
        """Return which slices it starts with, as the end of a sentence about slices."""
        if self.slice is not None:
            return f" {self.slice}"
        return "" if self.time is None else f" of {self.time.isoformat()} or later"

    def includes(self, applied: AppliedSlice) -> bool:
        """Return whether the rebuild starts with a slice, if it has not started before."""
        if self.slice is not None:
            return applied.name == self.slice
        if self.time is not None:
            return applied.at is not None and applied.at >= self.time
        return True


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """How a table is built again.

    Attributes:
        replay: What becomes of the table.
        included: Names of the slices that waited, and are applied, too.
        requeued: Names of slices that were requeued, and are left out: the table has no commit of theirs.
        missing: Data files that the table's last version lacks, so that its rows can't be read.
    """

    replay: RewindPlan
    included: tuple[str, ...] = ()
    requeued: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def included_times(self) -> dict[str, datetime]:
        """The processing times of the slices that waited, by name."""
        return {known.name: known.at for known in self.replay.slices if known.name in self.included}

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `rebuild -o json` prints it."""
        replay = self.replay
        return {
            "version": replay.state.version,
            "base": replay.base,
            "slices": replay.names,
            "skipped": replay.skipped_names,
            "included": list(self.included),
            "included_times": {name: format_instant(at) for name, at in self.included_times.items()},
            "requeued": list(self.requeued),
            "foreign_commits": [commit.version for commit in replay.foreign],
        }


def plan_rebuild(
    context: ProcessingContext,
    entity: Entity,
    start: RebuildStart,
    *,
    included: Sequence[Arriving] = (),
    strategy: Strategy | None = None,
    is_over_foreign: bool = False,
) -> RebuildPlan:
    """Return how an entity's table is built again from its slices; nothing is written.

    Slices are applied in the order in which they were, each with its recorded processing time. A slice that
    was processed more than once is applied where it was processed last. One that was skipped since then is
    left out.

    Args:
        context: The context of the processing.
        entity: The entity.
        start: Where the rebuild starts; slices before it in the same commit are applied again, too.
        included: Slices that wait, which are applied in their places. Only a rebuild of all slices has some.
        strategy: The strategy by which they are applied; the entity's own unless given.
        is_over_foreign: Whether commits of other writers may be lost.

    Raises:
        UsageError: No slice was processed, or none from the start on.
        DataLossError: Commits of other writers would be lost, or files of the version to start with are gone.
        SliceError: Slices are gone from bronze, or have changed.
        MigrationError: The past versions of the entity can't be read.
    """
    chain, is_whole = context.chain(entity), start == RebuildStart()
    strategy = strategy or entity.strategy
    wanted = with_times(context, in_place(chain.order, included), strategy)
    skipped = chain.skipped(wanted)
    first = next((each for each in wanted if each.item_id not in skipped and start.includes(each)), None)
    if first is None and not (wanted and is_whole):
        raise UsageError(
            f"{entity.called} has no processed slice{start.words if wanted else ''}",
            remedy=Phrase(Command("manifest", "ls", "--entity", entity.called), " lists the slices."),
        )
    lasting = 0 if is_whole or first is None else _lasting(chain, wanted, first)
    replay = plan_replay(
        context,
        entity,
        wanted,
        lasting,
        is_whole=is_whole,
        strategy=strategy,
        new=[each.item_id for each in included],
        may_lose=lambda _: is_over_foreign,
    )
    version = replay.state.version
    return RebuildPlan(
        replay,
        tuple(each.name for each in included),
        _requeued(chain, wanted),
        () if version is None else tuple(missing_files(chain.lake, chain.silver, version)),
    )


def _lasting(chain: SliceChain, wanted: Sequence[AppliedSlice], first: AppliedSlice) -> int:
    """Return how many commits stay if a table is built again from a slice on.

    Raises:
        DataLossError: The log does not show the commit of the slice.
    """
    own = next((commit.version for commit, slices in chain.held if first in slices), None)
    if own is None:
        raise DataLossError(
            f"the log of {chain.entity.called} does not show the commit of {first.name}",
            remedy="Start with a later slice, or build the table from all slices.",
        )
    return lasting_commits(chain, wanted, lambda commit, _: commit.version == own)


def _requeued(chain: SliceChain, applied: Sequence[AppliedSlice]) -> tuple[str, ...]:
    """Return the names of requeued slices that wait, and that are not among those which the table holds.

    Their former processing changed no row, was undone, or failed.
    """
    held = {each.item_id for each in applied}
    waiting = (
        item for item in chain.items(Verdict.READY) if item.verdict(chain.application) is Verdict.READY
    )
    names = (slice_name(item) for item in waiting if item.revision > 1 and item.item_id not in held)
    return tuple(sorted(names, key=natural_key))
