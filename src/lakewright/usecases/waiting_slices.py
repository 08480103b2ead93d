"""The commands that process slices which wait, or that no run has seen yet, as `status` names them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lakewright.errors.phrase import Command
from lakewright.slices.discover import natural_key
from lakewright.slices.other_runs import entity_name, entity_targets, find_other_runs
from lakewright.usecases.slice_times.refused_times import refused_arrived
from lakewright.usecases.staleness.readers import dependents
from lakewright.usecases.staleness.repeated_appends import commands_adding_once

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.errors import Fault
    from lakewright.plan.other_runs import OtherRun
    from lakewright.run.build_history import Instance
    from lakewright.slices.deviations import CorrectedSlices
    from lakewright.usecases.bronze_status import Arrived
    from lakewright.usecases.items import Row

__all__ = ["WaitingSlices"]


@dataclass(frozen=True)
class WaitingSlices:
    """Finds what to type for slices of entities of which each target takes only some.

    Attributes:
        resumed: The targets and instances that failed runs build once they are resumed. A second run of them
            might add rows twice.
    """

    app: App
    resumed: Collection[Instance] = frozenset()

    @cached_property
    def limits(self) -> dict[str, tuple[str, ...]]:
        """What the targets of entities take that no target takes as a whole."""
        taken: dict[str, list[str]] = {}
        for name, definition in self.app.project.targets.items():
            if definition.kind != "entity":
                continue
            entity = entity_name(self.app.project, definition.raw)
            if entity is not None:
                keys = (key for key in ("slices", "until") if key in definition.raw)
                limits = [f"{key}: {definition.raw[key]}" for key in keys]
                taken.setdefault(entity, []).append(f"{name} takes {', '.join(limits)}" if limits else "")
        return {entity: tuple(texts) for entity, texts in taken.items() if all(texts)}

    def come_first(self, waiting: Iterable[Row], failed: Iterable[Row]) -> bool:
        """Return whether slices that wait are older than what failed runs take once they are resumed.

        These would make them late.

        Args:
            waiting: The slices that wait and that a run would take.
            failed: The slices that have failed.
        """
        held = _names(failed)
        for entity, names in self._by_entity(waiting).items():
            runs = self._runs(entity, names)
            own = [run.slice for run in runs if not self._is_resumed(entity, run)]
            resumed = [run.slice for run in runs if self._is_resumed(entity, run)] + held.get(entity, [])
            if own and resumed and min(map(natural_key, own)) < min(map(natural_key, resumed)):
                return True
        return False

    def corrected_come_first(self, corrected: Iterable[CorrectedSlices], open_: Iterable[Row]) -> bool:
        """Return whether skipped slices that were corrected come before what failed runs take.

        They are older than slices that wait or have failed, or are those of a failed run, whose target would
        find none.

        Args:
            corrected: The corrected slices.
            open_: The slices that wait, and those that have failed.
        """
        others = _names(open_)
        for each in corrected:
            first = min(map(natural_key, each.names))
            if any(first < natural_key(name) for name in others.get(each.entity, ())):
                return True
            runs = self._runs(each.entity, each.names)
            if any(self._is_resumed(each.entity, run) for run in runs):
                return True
        return False

    def _by_entity(self, waiting: Iterable[Row]) -> dict[str, list[str]]:
        """Return the waiting slices of entities of which each target takes only some, in order."""
        slices = _names(
            row
            for row in waiting
            if row.waits_for is None and row.application.is_of_entity and row.entity in self.limits
        )
        return {entity: sorted(names, key=natural_key) for entity, names in slices.items()}

    def commands(self, waiting: Iterable[Row]) -> Iterator[tuple[str, tuple[Command, ...]]]:
        """Yield these entities with the commands that process what waits."""
        for entity, names in self._by_entity(waiting).items():
            if commands := self._commands_of(entity, names):
                yield entity, commands

    def told(self, arrived: Arrived, blocked: Fault | None) -> Arrived:
        """Return new slices with what a run would do about them.

        Args:
            arrived: The slices.
            blocked: Why a run would process none of their entity.
        """
        if blocked is not None:
            return replace(arrived, refused=arrived.refused or blocked)
        timely = [name for name in arrived.slices if name not in arrived.late_names]
        if arrived.entity in self.limits:
            arrived = replace(arrived, commands=self._commands_of(arrived.entity, timely))
        error = refused_arrived(self.app, arrived.entity, timely) if arrived.refused is None else None
        return arrived if error is None else replace(arrived, refused=error.as_fault())

    def _commands_of(self, entity: str, slices: Sequence[str]) -> tuple[Command, ...]:
        """Return the commands of jobs that take slices; of several, the one that builds most from the table.

        Left out are those of runs that take them once they are resumed.
        """
        runs = self._runs(entity, slices)
        return commands_adding_once(self.app, (run for run in runs if not self._is_resumed(entity, run)))

    def _runs(self, entity: str, slices: Sequence[str]) -> Sequence[OtherRun]:
        """Return the runs of jobs that take slices; of several, the one that builds most from the table."""
        return find_other_runs(self.app.project, entity, slices, partial(dependents, self.app))

    def _is_resumed(self, entity: str, run: OtherRun) -> bool:
        """Return whether a failed run processes an entity in the instance of a run once it is resumed."""
        taken = entity_targets(self.app.project, entity, self.app.project.jobs[run.job].targets)
        instance = tuple(sorted(self.app.journal.hide_secrets(dict(run.parameters)).items()))
        return any((name, instance) in self.resumed for name, _ in taken)


def _names(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Return the names of slices by their entities."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.entity or "", []).append(row.slice)
    return found
