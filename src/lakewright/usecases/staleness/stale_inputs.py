"""Targets that are older than what they read: a run left them out, or built them too early."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.graph import build_graph, sources_of
from lakewright.plan.phase import Phase
from lakewright.run.kept_rows import kept_rows
from lakewright.run.leftovers import is_built
from lakewright.run.outputs import read_by, written_by
from lakewright.spec.words import first_of
from lakewright.usecases.staleness.declared_nodes import declared_nodes, offline_lake, sample_workspace
from lakewright.usecases.staleness.earlier_builds import RUNS, built_instances
from lakewright.usecases.staleness.emptied import added_rows_of, kept_rows_of
from lakewright.usecases.staleness.readers import views_of
from lakewright.usecases.staleness.stale_instances import always_runs, is_built_whole

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.manifest.store import Put
    from lakewright.plan.resource import Resource
    from lakewright.run.result import RunResult
    from lakewright.spec.models.job import Job

__all__ = ["keep_dirty", "taint_left_out"]

MOST_NAMED = 3

_Instance: TypeAlias = tuple[tuple[str, str], ...]

log = logging.getLogger(__name__)


def keep_dirty(app: App, before: Iterable[Taint], run: RunResult) -> None:
    """Taint what a run has built from the output of targets that are to be built again.

    Only what was dirty itself is looked at: it was built again because of a change that these targets lack.

    Args:
        app: The project.
        before: The taints from before the run.
        run: The run.
    """
    try:
        left = {each.place.key: each for each in app.journal.taints(app.project.name)}
        dirty = [each for each in left.values() if each.place.phase == Phase.BUILD.value]
        gone = [each.place for each in before if each.place.key not in left] if dirty else []
        if puts := tuple(_stale(app, gone, dirty, run)):
            app.store.write(Write(puts=puts))
    except LakewrightError as error:  # the run has ended, and its results are recorded
        log.warning("targets that read what is to be built again could not be marked as dirty: %s", error)


def taint_left_out(app: App, run: RunResult) -> None:
    """Taint what a run of chosen targets left out of its job, although it reads what these have written.

    These are targets that were built before in the same instance: a run of the whole job would have built
    them after their input, and the next one would find them filled.
    """
    try:
        recorded = app.journal.run(run.run_id)
        is_chosen = recorded is not None and recorded.facts.get("targets")
        if is_chosen and (puts := tuple(_left_out(app, run))):
            app.store.write(Write(puts=puts))
    except LakewrightError as error:  # the run has ended, and its results are recorded
        log.warning("targets that the run left out could not be marked as dirty: %s", error)


def _left_out(app: App, run: RunResult) -> Iterator[Put]:
    job = app.project.jobs.get(run.job)
    results = [each for each in app.journal.targets(run.run_id) if each["phase"] == Phase.BUILD.value]
    changed = [each for each in results if is_built(each) and not _is_idle(each)]
    built = {each["name"] for each in changed}
    if job is None or not built:
        return
    workspace = sample_workspace(app.project, job, offline_lake(app))
    nodes = list(declared_nodes(workspace, job.target_names(workspace.scope), Phase.BUILD))
    sources = build_graph(nodes, Phase.BUILD).sources
    taken = {each["name"] for each in results}
    left = sources.keys() - taken - views_of(app, job, sources)
    readers = {name: sources_of(name, sources) & built for name in left}
    readers = {name: read for name, read in readers.items() if read}
    if not readers:
        return
    known = {each.place.key for each in app.journal.taints(app.project.name)}
    added = added_rows_of(app, job, readers)
    always = {name for name in readers if always_runs(app, job, name)}
    by_instance: dict[_Instance, set[str]] = {}
    for each in changed:
        by_instance.setdefault(_key(each.get("instance", {})), set()).add(each["name"])
    earlier = built_instances(app, job, RUNS, readers.keys())
    for name, instance in dict.fromkeys((name, _key(parameters)) for name, parameters in earlier):
        place = TargetPhase(app.project.name, name, Phase.BUILD.value, dict(instance))
        read = sorted(readers[name] & by_instance.get(instance, set()))
        if not read or place.key in known:
            continue
        # The next run of the job builds it anyway, unless it has instances of its own.
        if name not in always or not is_built_whole(app, job, name, place.parameters):
            reason = f"run {run.run_id} built {first_of(read, MOST_NAMED)}, which it reads, without it"
            words = added.get(name)
            yield place.tainted(reason, kept=kept_rows(reason, words))


def _is_idle(entry: Mapping[str, Any]) -> bool:
    """Return whether a build is of an entity that found no slice to process, and only had a warning."""
    return entry.get("kind") == "entity" and not (entry.get("metrics") or {}).get("slices")


def _key(parameters: Mapping[str, str]) -> _Instance:
    return tuple(sorted(parameters.items()))


def _stale(app: App, gone: Collection[TargetPhase], dirty: Iterable[Taint], run: RunResult) -> Iterator[Put]:
    job = app.project.jobs.get(run.job)
    if job is None or not gone:
        return
    built = {
        TargetPhase(app.project.name, each["name"], each["phase"], each.get("instance", {})).key
        for each in app.journal.targets(run.run_id)
        if is_built(each)
    }
    stale = [place for place in gone if place.key in built]
    views = views_of(app, job, {place.target for place in stale})  # they hold no rows
    stale = [place for place in stale if place.target not in views]
    written = [(each, _written(app, each.place)) for each in dirty] if stale else []
    for place in stale:
        read = read_by(app.project, offline_lake(app), job, place.target, place.parameters)
        names = sorted({each.place.target for each, places in written if _meet(read, places)})
        if names:
            yield _tainted(app, job, place, names, run)


def _tainted(app: App, job: Job, place: TargetPhase, names: list[str], run: RunResult) -> Put:
    verb = "is" if len(names) == 1 else "are"
    reason = f"run {run.run_id} built it from {first_of(names, MOST_NAMED)}, which {verb} to be built again"
    words = kept_rows_of(app, job, [place.target]).get(place.target)
    return place.tainted(reason, kept=kept_rows(reason, words))


def _written(app: App, place: TargetPhase) -> frozenset[Resource]:
    for job in app.project.jobs.values():
        if place.target in job.targets:
            found = written_by(app.project, offline_lake(app), job, place.target, place.parameters)
            if found:
                return found
    return frozenset()


def _meet(read: frozenset[Resource], written: frozenset[Resource]) -> bool:
    return any(each.intersects(one) for each in read for one in written)
