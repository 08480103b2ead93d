"""Which slices runs take next, and which steps of entities failed runs have done: each is read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.lake.paths import local_path
from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_entry_undone
from lakewright.slices.application import application_of
from lakewright.slices.changed import new_item
from lakewright.slices.discover import discovered, item_id, list_slices, slice_name
from lakewright.slices.other_runs import entity_name, takes_recorded
from lakewright.slices.processed import is_late
from lakewright.slices.recover_from_log import as_if_recovered
from lakewright.usecases.failed_runs.undone_runs import alike_runs, builds_left, with_resumed
from lakewright.usecases.placed import chain_of
from lakewright.usecases.slice_times.declared_times import late_items

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.manifest.journal import Run
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = ["NextSlices", "slices_left_out"]

_Steps: TypeAlias = dict[str, dict[bool, list[Mapping[str, str]]]]
"""The instances in which a run has processed an entity, and those in which it has not, by target."""


@dataclass(frozen=True, slots=True)
class NextSlices:
    """Reads what runs would take next, once for each entity, and what failed runs have done of it."""

    app: App
    _recorded: dict[tuple[str, Verdict], list[Item]] = field(default_factory=dict, init=False)
    _late: dict[str, tuple[Item, ...]] = field(default_factory=dict, init=False)
    _unseen: dict[str, list[Item]] = field(default_factory=dict, init=False)
    _steps: dict[str, _Steps] = field(default_factory=dict, init=False)

    def ready(self, entity: Entity) -> list[str]:
        """Return the names of slices that the next run takes: they are ready, or no run has seen them yet."""
        late = {item.item_id for item in self.late(entity)}
        timely = (item for item in self._items(entity, Verdict.READY) if item.item_id not in late)
        return [slice_name(item) for item in (*timely, *self.unseen(entity))]

    def late(self, entity: Entity) -> tuple[Item, ...]:
        """Return the items of an entity's slices that are ready, and that a run refuses as late."""
        if entity.called not in self._late:
            try:
                self._late[entity.called] = late_items(self.app, entity, self._items(entity, Verdict.READY))
            except LakewrightError:  # what can't be read is told by itself
                self._late[entity.called] = ()
        return self._late[entity.called]

    def unseen(self, entity: Entity) -> list[Item]:
        """Return the items of slices in bronze that the next run records and processes.

        Those that the table holds already, and late ones that are refused, are left out. Only a folder of
        this machine is looked at.
        """
        if entity.called not in self._unseen:
            try:
                self._unseen[entity.called] = list(_unseen(self.app, entity))
            except LakewrightError:  # what can't be read is told by itself
                self._unseen[entity.called] = []
        return self._unseen[entity.called]

    def steps(self, run: Run) -> _Steps:
        """Return the instances in which a run has processed entities, and those in which it has not.

        Of a run that was killed, the instances that it did not reach are not recorded: its arguments tell
        them.
        """
        if run.run_id not in self._steps:
            self._steps[run.run_id] = _steps(self.app, run)
        return self._steps[run.run_id]

    def _items(self, entity: Entity, verdict: Verdict) -> list[Item]:
        """Return the items of an entity's slices that have a verdict for it."""
        key = (entity.called, verdict)
        if key not in self._recorded:
            prefix = item_id(entity.places(self.app.project.lake).bronze) + "/"
            application = application_of(self.app.project.name, entity)
            found = self.app.store.select(Query(verdicts=frozenset({verdict}), prefix=prefix))
            self._recorded[key] = [each for each in found if each.verdict(application) is verdict]
        return self._recorded[key]


def _unseen(app: App, entity: Entity) -> Iterable[Item]:
    chain = chain_of(app, entity)
    if local_path(chain.bronze) is None or not entity.enabled:
        return []
    slices = list_slices(chain.bronze, app.lake)
    found = {each.item_id: new_item(each) for each in discovered(slices, chain.application, entity.called)}
    present = app.store.read(list(found))
    new = {name: item for name, item in found.items() if name not in present}
    silver = chain.silver.location
    if new and silver is not None and local_path(silver) is not None:
        new |= as_if_recovered(chain, new.values())
    ready = [item for item in new.values() if item.verdict(chain.application) is Verdict.READY]
    if not ready or entity.settings.late_slices == "apply":
        return ready
    last = chain.last_processed(present)
    return (item for item in ready if not is_late(item, last))


def _steps(app: App, run: Run) -> _Steps:
    """Return the steps of a run; what it has not run, as it only resumed others, is as these have left it."""
    found = _own_steps(app, run)
    for resumed in _resumed_by(app, run) if run.facts.get("resume") else ():
        for name, of_target in _own_steps(app, resumed).items():
            mine = found.setdefault(name, {True: [], False: []})
            for is_done, instances in of_target.items():
                known = [*mine[True], *mine[False]]
                mine[is_done] += [each for each in instances if each not in known]
    return found


def _resumed_by(app: App, run: Run) -> Iterator[Run]:
    """Yield the runs that a run has resumed, newest first."""
    targets, is_alone = run.facts.get("targets") or (), bool(run.facts.get("no_lifecycle"))
    alike = alike_runs(
        app, run.job, run.parameters, run.phase, project=run.project, targets=targets, is_alone=is_alone
    )
    return with_resumed(each for each in alike if each.started < run.started)


def _own_steps(app: App, run: Run) -> _Steps:
    found: _Steps = {}
    for each in app.journal.targets(run.run_id):
        definition = app.project.targets.get(each["name"])
        if each["phase"] == Phase.BUILD and definition is not None and definition.kind == "entity":
            of_target = found.setdefault(each["name"], {True: [], False: []})
            of_target[not is_entry_undone(each)].append(each.get("instance", {}))
    if run.finished is not None:
        return found
    left = builds_left(app, (run,))
    if not left:
        return {}
    for name, instance in sorted(left):
        definition = app.project.targets.get(name)
        if definition is not None and definition.kind == "entity":
            of_target = found.setdefault(name, {True: [], False: []})
            if dict(instance) not in of_target[False]:
                of_target[False].append(dict(instance))
    return found


def slices_left_out(app: App, run: Run) -> bool:
    """Return whether slices wait in entities that a run has processed: a run that is resumed skips these.

    What failed after them, such as a check, may depend on them: they may be the correction.
    """
    slices, job = NextSlices(app), app.project.jobs.get(run.job)
    if job is None:
        return False
    for name, instances in slices.steps(run).items():
        declared = app.project.targets[name].raw
        entity = entity_name(app.project, declared)
        if entity is not None and _is_left_out(slices, job, declared, entity, instances):
            return True
    return False


def _is_left_out(
    slices: NextSlices,
    job: Job,
    declared: Mapping[str, Any],
    entity: str,
    instances: Mapping[bool, Sequence[Mapping[str, str]]],
) -> bool:
    """Return whether a slice is ready that only those instances of a target take which a run has done."""
    project = slices.app.project

    def is_taken(is_done: bool, name: str) -> bool:
        return any(takes_recorded(project, job, declared, each, name) for each in instances[is_done])

    ready = slices.ready(project.entity(entity))
    return any(is_taken(True, name) and not is_taken(False, name) for name in ready)
