"""Whether the next run would refuse the processing times of slices that are ready, as a failed one did.

Such a run fails before it locks a slice, so that the manifest has nothing to resolve, and to resume it does
not help. The slices are looked for as they are now: somebody may have processed them, or later ones, since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, LakewrightError
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.store import Query
from lakewright.plan.status import Status
from lakewright.slices.application import application_of, applications_before
from lakewright.slices.discover import item_id, natural_key, slice_name
from lakewright.slices.other_runs import declared_time, entity_name, find_other_runs
from lakewright.slices.pending import sort_pending
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.recover_from_log import has_landed
from lakewright.slices.selection import SliceSelection
from lakewright.slices.time_check import early_error, may_be_late
from lakewright.spec.models.entity import Strategy
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.manifest.record import Application
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = ["refused_time", "refused_waiting"]

_UNDONE = (Status.FAILED.value, Status.ABORTED.value, Status.BLOCKED.value)
_OPEN = frozenset((Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID))


def refused_time(app: App, run: Run) -> BackdatedError | None:
    """Return the error with which a failed run would fail if it were resumed now, or None."""
    job = app.project.jobs.get(run.job)
    if job is None or not any(_declares_time(app, name) for name in job.targets):
        return None
    return _first_refused(app, ((job, *each) for each in _undone(app, run)))


def refused_waiting(app: App, entity: str, first: str) -> BackdatedError | None:
    """Return the error with which a job would fail that takes an entity's slices, or None.

    Args:
        app: The project.
        entity: The entity.
        first: Name of the first slice that waits: jobs whose parameters choose slices are asked for it.
    """
    timed = [name for name in app.project.targets if _declares_time(app, name)]
    names = {name for name in timed if entity_name(app.project, app.project.targets[name].raw) == entity}
    if not names:
        return None
    runs = {run.job: dict(run.parameters) for run in find_other_runs(app.project, entity, (first,))}
    targets = ((job, name) for job in app.project.jobs.values() for name in job.targets if name in names)
    return _first_refused(app, ((job, name, runs.get(job.name, {})) for job, name in targets))


def _first_refused(app: App, asked: Iterable[tuple[Job, str, Mapping[str, str]]]) -> BackdatedError | None:
    for job, name, parameters in asked:
        try:
            error = _refused(app, job, name, parameters)
        except (LakewrightError, ValueError):  # it is only a forecast; parameters are unknown or have changed
            continue
        if error is not None:
            return error
    return None


def _declares_time(app: App, target: str) -> bool:
    definition = app.project.targets.get(target)
    return (
        definition is not None and definition.kind == "entity" and declared_time(definition.raw) is not None
    )


def _undone(app: App, run: Run) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the targets with a declared time that a run left undone, with the parameters of the instances."""
    seen: list[tuple[str, Mapping[str, str]]] = []
    for entry in app.journal.targets(run.run_id):
        found = (entry["name"], entry.get("instance", {}))
        if entry["status"] in _UNDONE and found not in seen and _declares_time(app, found[0]):
            seen.append(found)
            yield found


def _refused(app: App, job: Job, name: str, parameters: Mapping[str, str]) -> BackdatedError | None:
    from lakewright.targets.entity.target import EntityTarget  # not needed if no run has failed so

    given = (each for each in job.parameters if each.name in parameters)
    values = {each.name: each.parse(parameters[each.name]) for each in given}
    scope = app.project.job_scope(job, values)
    workspace = Workspace(app.project.within(scope), scope, app.lake)
    target = Target.named(workspace, name)
    if not isinstance(target, EntityTarget):
        return None
    entity = workspace.entity(target.entity)
    if (target.strategy or entity.strategy) is not Strategy.HISTORIC:
        return None
    times = ProcessingTimes(
        target.processing_time, app.lake.settings.zone, scope, is_lenient=False, warn=lambda _: None
    )
    ready = _ready(app, entity, SliceSelection(target.slices, target.until))
    if not ready or early_error(app.lake, entity, list(map(slice_name, ready)), times) is None:
        return None
    # Which slices are late takes a look at those that are processed, so only where it matters.
    timed = _not_refused_as_late(app, entity, ready)
    silver, application = entity.places(app.lake.settings).silver, application_of(app.project.name, entity)
    if not timed or has_landed(app.lake, silver, timed[0], application):
        return None
    return early_error(app.lake, entity, list(map(slice_name, timed)), times)


def _ready(app: App, entity: Entity, selection: SliceSelection) -> tuple[Item, ...]:
    prefix = item_id(entity.places(app.lake.settings).bronze) + "/"
    items = app.store.select(Query(verdicts=_OPEN, prefix=prefix))
    application = application_of(app.project.name, entity)
    pending = sort_pending(items, application, after=applications_before(entity))
    return pending.taken_by(selection).ready


def _not_refused_as_late(app: App, entity: Entity, ready: Sequence[Item]) -> list[Item]:
    application = application_of(app.project.name, entity)
    return [each for each in ready if may_be_late(entity, each) or not _is_late(app, application, each)]


def _is_late(app: App, application: Application, item: Item) -> bool:
    own = natural_key(slice_name(item))
    processed = app.store.select(Query(application=application, verdicts=frozenset({Verdict.PROCESSED})))
    return any(natural_key(slice_name(each)) > own for each in processed)
