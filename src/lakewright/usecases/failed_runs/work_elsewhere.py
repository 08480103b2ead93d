"""What of a failed run's work others have done since: `process`, and runs of other jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.manifest.store import Query
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_entry_undone
from lakewright.slices.application import application_of
from lakewright.slices.discover import item_id, slice_name, slice_of_id
from lakewright.slices.other_runs import entity_name, takes_recorded
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.usecases.entity_standing import read_standings

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = ["Step", "WorkElsewhere", "is_rebuilt_otherwise", "slices_to_place"]

Step: TypeAlias = tuple[tuple[tuple[str, str], ...], str, str]
"""The sorted parameters of an instance, a phase and a target."""

_CLEANUP = (Phase.TRUNCATE, Phase.DESTROY)

_OPEN = frozenset({Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID, Verdict.READY})


def slices_to_place(app: App, run: Run) -> frozenset[str] | None:
    """Return the ids of the items of slices that a rebuild was to put in their place, and that still wait.

    None if the run was no such rebuild, or its entity is not known.
    """
    names, called = run.facts.get("include"), run.job.partition(" ")[2]
    if run.phase != "REBUILD" or not names:
        return None
    with suppress(LakewrightError):  # the entity is not declared any more, or is faulty
        entity = app.project.entity(called)
        bronze, application = entity.places(app.project.lake).bronze, application_of(app.project.name, entity)
        wanted = [item_id(f"{bronze}/{name}") for name in names]
        items = app.store.read(wanted)
        done = {each for each, item in items.items() if item.verdict(application) is not Verdict.READY}
        return frozenset(wanted) - done
    return None


def is_rebuilt_otherwise(app: App, run: Run, newest_first: Iterable[Run]) -> bool:
    """Return whether nothing is left of what a rebuild was to do, although no rebuild has done it.

    None of the slices waits that it was to put in their place, or a later run has emptied or removed its
    table, so that all slices are processed again.

    Args:
        app: The project.
        run: A failed run; False is returned if it is no rebuild.
        newest_first: Runs, the later ones among them.
    """
    if run.phase != "REBUILD":
        return False
    if slices_to_place(app, run) == frozenset():
        return True
    called, ended = run.job.partition(" ")[2], run.finished or run.started
    later = takewhile(lambda each: each.started >= ended, newest_first)
    return any(
        _is_of(app, each, called) and not is_entry_undone(each)
        for one in later
        if one.project == run.project and one.phase in _CLEANUP
        for each in app.journal.targets(one.run_id)
        if each["phase"] in _CLEANUP
    )


def _is_of(app: App, entry: Mapping[str, Any], called: str) -> bool:
    """Return whether a step is one of a target that processes an entity."""
    declared = app.project.targets.get(entry["name"])
    with suppress(LakewrightError):  # a definition is wrong, which is told by itself
        return (
            declared is not None
            and declared.kind == "entity"
            and entity_name(app.project, declared.raw) == called
        )
    return False


@dataclass(frozen=True, slots=True)
class WorkElsewhere:
    """Tells what others have done of the work of runs."""

    app: App

    def jobs(self, targets: Iterable[str]) -> frozenset[str]:
        """Return the names of the jobs that list one of these targets."""
        wanted = frozenset(targets)
        return frozenset(
            name for name, job in self.app.project.jobs.items() if not wanted.isdisjoint(job.targets)
        )

    def is_processed(self, run: Run, step: Step) -> bool:
        """Return whether the slices of a step that a run left undone were processed or skipped since.

        The slices that failed in the run must be, or a later one that the instance takes, and none that it
        takes may be open.
        """
        instance, phase, name = step
        definition, job = self.app.project.targets.get(name), self.app.project.jobs.get(run.job)
        if phase != Phase.BUILD or definition is None or job is None or definition.kind != "entity":
            return False
        if any(HIDDEN in text for _, text in instance):
            return False
        with suppress(LakewrightError):  # the project's files have a fault, which is told by itself
            called = entity_name(self.app.project, definition.raw)
            if called is not None:
                return self._is_processed(run, step, job, self.app.project.entity(called))
        return False

    def _is_processed(self, run: Run, step: Step, job: Job, entity: Entity) -> bool:
        app, application = self.app, application_of(self.app.project.name, entity)
        declared, parameters = app.project.targets[step[2]].raw, dict(step[0])

        def is_taken(name: str) -> bool:
            return takes_recorded(app.project, job, declared, parameters, name)

        prefix = item_id(entity.places(app.project.lake).bronze) + "/"
        listed = app.store.select(Query(verdicts=_OPEN, prefix=prefix))
        if any(each.verdict(application) in _OPEN and is_taken(slice_name(each)) for each in listed):
            return False
        ids = self._failed_items(run, step)
        if ids:
            items = app.store.read(ids)
            return all(each in items and items[each].verdict(application) not in _OPEN for each in ids)
        last = next(
            (each.last for each in read_standings(app).entities if each.application == application), None
        )
        if last is None or run.finished is None or last.at < run.finished:
            return False
        return is_taken(slice_of_id(last.item_id))

    def _failed_items(self, run: Run, step: Step) -> list[str]:
        for each in self.app.journal.targets(run.run_id):
            key = (tuple(sorted(each.get("instance", {}).items())), each["phase"], each["name"])
            if key == step and is_entry_undone(each):
                return list(each.get(FAILED_ITEMS, ()))
        return []
