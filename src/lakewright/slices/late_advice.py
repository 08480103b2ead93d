"""What to type about late slices, and what each of the commands does to the rows of later ones.

A slice that is applied after later ones makes its rows the current ones, unless `sequence_by` orders them.
Even then, records come back that later slices lack, if these infer deletes: no row tells their end. With
`full` it replaces the newer rows of its partitions. A rebuild puts it in its place, for which it needs a
processing time: one that is declared, or that with which the slice was processed before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.lock import command
from lakewright.slices.discover import called_name, slice_name
from lakewright.slices.processing_time import MOST_TYPED
from lakewright.slices.time_check import placement_in, rebuild_with
from lakewright.spec.models.entity import Strategy

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.time_check import Placement
    from lakewright.spec.models.entity import Entity

__all__ = ["LateSlices", "find_late_slices", "has_place", "late_slices_in"]


@dataclass(frozen=True, slots=True)
class LateSlices:
    """Late slices of an entity.

    Attributes:
        entity: What commands call the entity.
        names: The slices.
        strategy: The strategy by which they are applied.
        is_ordered: Whether `sequence_by` tells which rows are newer.
        may_bring_back: Whether records come back that later slices lack, although `sequence_by` is declared.
        placed: Those that need a place, and that a rebuild puts in it.
        undated: Those whose name tells no processing time, although a job declares that it does.
        newest: The last processed slice by name, than which they are older; None if it is not known.
    """

    entity: str
    names: tuple[str, ...]
    strategy: Strategy
    is_ordered: bool
    may_bring_back: bool = False
    placed: frozenset[str] = frozenset()
    undated: frozenset[str] = frozenset()
    newest: str | None = None

    def only(self, *names: str) -> LateSlices:
        """Return some of these slices."""
        return replace(self, names=names)

    @property
    def words(self) -> str:
        """Why they are late, after "is" or "are"."""
        older = "older than one that" if self.newest is None else f"older than {self.newest}, which"
        return f"{older} is already processed"

    @property
    def is_placed(self) -> bool:
        """Whether a rebuild puts them in their place, and they need it."""
        return bool(self.names) and self.placed.issuperset(self.names[:MOST_TYPED])

    @property
    def is_safe(self) -> bool:
        """Whether the order of their processing makes no difference to rows."""
        return self.is_ordered and not self.may_bring_back

    @property
    def is_undated(self) -> bool:
        """Whether the name of none of them tells its processing time: no run takes them."""
        return bool(self.names) and self.undated.issuperset(self.names)

    @property
    def rebuild(self) -> Command | None:
        """The command that puts them in their place; None if none does, or none is needed."""
        return rebuild_with(self.entity, self.names) if self.is_placed else None

    @property
    def typed(self) -> tuple[str, ...]:
        """What commands call the slices."""
        return tuple(called_name(self.entity, name) for name in self.names)

    @property
    def requeue(self) -> Command:
        """The command that applies them after the others."""
        return command("requeue", *self.typed).plus("--late")

    @property
    def skip(self) -> Command:
        """The command that leaves them out."""
        return command("skip", *self.typed)

    @property
    def command(self) -> Command:
        """The command that harms nothing."""
        if self.rebuild is not None:
            return self.rebuild
        return self.skip if self.strategy is Strategy.FULL or self.is_undated else self.requeue

    @property
    def overwrites(self) -> str:
        """What becomes of newer rows if they are applied after the others, as the end of a sentence."""
        its = "its" if len(self.names) == 1 else "their"
        if self.strategy is Strategy.FULL:
            return f"replaces newer rows by {its} own"
        if self.is_ordered:
            return "may bring back records that later slices lack"
        return f"makes {its} {'older ' if self.is_placed else ''}rows the current ones"

    @property
    def effect(self) -> str:
        """What `requeue --late` does, as the end of a sentence."""
        if self.is_placed or self.strategy is Strategy.FULL:
            return self.overwrites
        it = "it" if len(self.names) == 1 else "them"
        return f"applies {it}" if self.is_safe else f"applies {it} and {self.overwrites}"

    @property
    def is_requeue_refused(self) -> bool:
        """Whether `requeue --late` only leads to a run that refuses the processing times."""
        return self.is_placed and self.strategy is Strategy.HISTORIC

    @property
    def warning(self) -> str | None:
        """What a run does that applies them after the others, and what puts them in their place; or None.

        What Full replaces is a warning of its own, and so is a processing time that the run refuses.
        """
        if self.strategy is Strategy.HISTORIC or self.is_safe:
            return None
        if self.rebuild is None:
            return None if self.strategy is Strategy.FULL else f"the next run {self.overwrites}"
        it = "it" if len(self.names) == 1 else "them"
        return Phrase(
            f"the next run {self.overwrites}; ", self.rebuild, f" instead puts {it} in {self._its_place}"
        )

    @property
    def remedy(self) -> str:
        """What to type, as the end of a sentence; what harms nothing comes first."""
        if self.is_undated:
            its = "its name tells" if len(self.names) == 1 else "their names tell"
            return Phrase(f"{its} no processing time: ", self.skip)
        if undated := [name for name in self.names if name in self.undated]:
            dated = self.only(*(name for name in self.names if name not in self.undated))
            return Phrase(dated.remedy, f"; {', '.join(undated)}: ", self.only(*undated).remedy)
        return self._remedy()

    @property
    def remedy_of_failed(self) -> str:
        """What to type about slices that failed for being late, as a sentence."""
        resolving = Phrase(command("resolve", *self.typed), ", then ")
        return Phrase(self.remedy if self.is_undated else self._remedy(resolving), ".")

    def _remedy(self, resolving: str = "") -> str:
        it = "it" if len(self.names) == 1 else "them"
        requeue, skip = Phrase(self.requeue, f" {self.effect}"), Phrase(self.skip, f" leaves {it} out")
        if self.rebuild is not None:
            placed = Phrase(resolving, self.rebuild, f" puts {it} in {self._its_place}, ", skip)
            return placed if self.is_requeue_refused else Phrase(placed, ", ", requeue)
        first, second = (skip, requeue) if self.strategy is Strategy.FULL else (requeue, skip)
        return Phrase(first, ", ", second)

    @property
    def _its_place(self) -> str:
        return "its place" if len(self.names) == 1 else "their places"


def late_slices_in(context: ProcessingContext, entity: Entity, items: Sequence[Item]) -> LateSlices:
    """Return late slices in the context of a run, with what to type about them."""
    options, times = context.options, context.times(entity)

    def declared(name: str) -> datetime | None:
        if options.declared_time is not None:
            return options.declared_time(name)
        # The time of another instance may be another one.
        return times.at(name) if options.selection.takes(name) else None

    names = tuple(map(slice_name, items))
    return find_late_slices(
        entity, names, placement_in(context, entity), declared, context.strategy_for(entity)
    )


def find_late_slices(
    entity: Entity,
    names: tuple[str, ...],
    placement: Placement,
    declared: Callable[[str], datetime | None],
    strategy: Strategy,
) -> LateSlices:
    """Return late slices of an entity with what to type about them.

    Args:
        entity: The entity.
        names: The slices.
        placement: The processed slices of the entity.
        declared: Returns the processing time that a job declares for a slice, or None.
        strategy: The strategy by which a run applies them.
    """
    # A rebuild applies slices by the entity's own strategy.
    needs_place = strategy is entity.strategy and _needs_place(entity)
    looked_at = names[:MOST_TYPED]
    placed = (name for name in looked_at if needs_place and has_place(entity, name, placement, declared))
    return LateSlices(
        entity.called,
        names,
        strategy,
        is_ordered=entity.settings.sequence_by is not None,
        may_bring_back=strategy is Strategy.MERGE and entity.settings.asserts_absence,
        placed=frozenset(placed),
        undated=frozenset(name for name in looked_at if _is_undated(name, declared)),
        newest=placement.newest(),
    )


def _is_undated(name: str, declared: Callable[[str], datetime | None]) -> bool:
    try:
        declared(name)
    except (LakewrightError, ValueError):
        return True
    return False


def has_place(
    entity: Entity, name: str, placement: Placement, declared: Callable[[str], datetime | None]
) -> bool:
    """Return whether a rebuild puts a slice before the later ones, where it belongs."""
    at = None
    with suppress(LakewrightError, ValueError):  # its name tells no time
        at = declared(name)
    if at is None and entity.settings.sequence_by is not None:
        return False
    return placement.has_place(name, at)


def _needs_place(entity: Entity) -> bool:
    """Return whether the order of an entity's slices counts.

    Without partitions, a slice of Full that is older than others leaves no row. With `sequence_by`, a merge
    keeps the newer rows, but not the absence of records that newer slices lack; versions also need times that
    follow each other.
    """
    if entity.strategy is Strategy.HISTORIC:
        return True
    if entity.settings.sequence_by is not None:
        return entity.strategy is Strategy.MERGE and entity.settings.asserts_absence
    return entity.strategy is Strategy.MERGE or bool(entity.partition_columns)
