"""The status of a project: what is running, waiting and failed, and the command to run next."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain

from lakewright.app import App
from lakewright.errors import BackdatedError, Fault, StorageUnavailable, TargetError
from lakewright.lake.observation import table_log
from lakewright.manifest.item import Verdict
from lakewright.manifest.journal import RUNNING, Journal, Run
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.manifest.readiness import Readiness
from lakewright.manifest.record import ANYONE
from lakewright.manifest.store import Query
from lakewright.plan.status import Status
from lakewright.run.leftovers import is_entry_undone
from lakewright.slices.application import application_of, applications_before, entity_of, project_of
from lakewright.slices.deviations import SLICES_CHANGED
from lakewright.slices.discover import item_id, natural_key
from lakewright.slices.late_advice import LateSlices
from lakewright.spec.project import Project
from lakewright.stores.registry import select_backend
from lakewright.stores.write_access import write_fault
from lakewright.usecases.answered_warnings import unanswered
from lakewright.usecases.bronze_status import look_at_bronze
from lakewright.usecases.damage.damaged_tables import damaged_tables, lost_beside
from lakewright.usecases.damage.lost_outputs import lost_outputs
from lakewright.usecases.damage.rebuild_status import due_rebuilds
from lakewright.usecases.damage.unrecorded_slices import items_after_recovery, unrecorded_slices
from lakewright.usecases.entity_standing import read_standings
from lakewright.usecases.failed_runs.checks_left import next_steps
from lakewright.usecases.failed_runs.next_slices import NextSlices
from lakewright.usecases.failed_runs.undone_runs import (
    builds_left,
    covers,
    has_steps,
    recorded_phases,
    runs_to_resume,
)
from lakewright.usecases.failed_runs.work_elsewhere import slices_to_place
from lakewright.usecases.history import Warned
from lakewright.usecases.items import Row, Rows
from lakewright.usecases.placed import chain_of, placed_entities
from lakewright.usecases.project_status import Elsewhere, ProjectStatus
from lakewright.usecases.quarantine_status import read_quarantined
from lakewright.usecases.slice_times.declared_times import late_items, late_slices_of
from lakewright.usecases.slice_times.refused_times import (
    blocking_time,
    commands_for_times,
    gives_place,
    refused_waiting,
)
from lakewright.usecases.staleness.tainted_targets import tainted_targets
from lakewright.usecases.triggers import list_triggers, repeated_runs, withheld_triggers
from lakewright.usecases.undeclared import undeclared_entities
from lakewright.usecases.waiting_slices import WaitingSlices

__all__ = [
    "project_status",
    "recorded_projects",
    "told_messages",
    "unrecorded_entities",
    "warned_beside",
    "warned_targets",
]

RECENT = 200
"""The number of latest runs to read; a history may hold many more."""

LAST_RUNS = 5

OPEN = frozenset({Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID, Verdict.READY})


def project_status(app: App) -> ProjectStatus:
    """Return the status of a project."""
    rows = Rows(app)
    items = app.store.select(Query(verdicts=OPEN))
    found = [row for item in items for row in rows.of(item) if row.verdict in OPEN]
    found = [*_without_owner(found, awaited := tuple(_awaited(app))), *_unlisted(awaited, found)]
    behind = tuple(unrecorded_slices(app))
    recovered = items_after_recovery(behind)
    found = [row for row in found if row.item.item_id not in recovered]
    found, elsewhere = _without_elsewhere(app, found)
    runs = tuple(app.journal.runs(RECENT))
    waiting = tuple(row for row in found if row.verdict is Verdict.READY)
    foreign = dict(_foreign(app.project, waiting))
    own = tuple(row for row in waiting if str(row.application) not in foreign)
    left, triggers = runs_to_resume(app, runs), list_triggers(app)
    slices, resumed = NextSlices(app), builds_left(app, left)
    running = tuple(run for run in runs if run.status == RUNNING)
    bronze, rebuilds = look_at_bronze(app, recovered), due_rebuilds(app)
    tainted = tuple(
        tainted_targets(app, {run.run_id for run in left}, {run.run_id for run in running}, resumed)
    )
    steps = next_steps(app, left, slices, tainted, bronze.corrected)
    whole = slices.built(run for run in left if steps[run.run_id].left_out is not None)
    late = frozenset(_late(app, own))
    timely = tuple(row for row in own if row.item.item_id not in late)
    waits = WaitingSlices(app, resumed | whole)
    unrecorded = tuple(unrecorded_entities(app))
    blocked = dict(_blocked(app, timely)) | dict(bronze.blocked)
    refused = {name: error for name, error in _refused(app, timely) if name not in blocked}
    damaged, gone = tuple(damaged_tables(app)), lost_outputs(app)
    answered = unanswered(app, warned_targets(app.journal, runs), runs)
    warned = tuple(warned_beside(answered, (*bronze.unreadable, *bronze.changed)))
    repeated = repeated_runs(triggers)
    undone = tuple(run for run in left if run.run_id not in repeated)
    to_place = (slices_to_place(app, run) or () for run in undone)
    return ProjectStatus(
        running=running,
        locked=tuple(row for row in found if row.lock is not None and not row.is_stale),
        stale=tuple(row for row in found if row.is_stale),
        failed=tuple(_failed(found)),
        waiting=waiting,
        undone=undone,
        warned=warned,
        last_runs=runs[:LAST_RUNS],
        limits=waits.limits,
        commands=dict(waits.commands(timely))
        | {name: commands_for_times(error)[0] for name, error in refused.items()},
        refused={name: error.message for name, error in refused.items()},
        misplaced=frozenset(name for name, error in refused.items() if gives_place(error)),
        blocked=blocked,
        late=late,
        foreign=foreign,
        arrived=tuple(
            waits.told(each, blocked.get(each.entity))
            for each in bronze.arrived
            if each.entity not in unrecorded
        ),
        elsewhere=elsewhere,
        vanished=bronze.vanished,
        corrected=bronze.corrected,
        changed=bronze.changed,
        missing=bronze.missing,
        unreadable=bronze.unreadable,
        quarantined=tuple(read_quarantined(app, bronze.changed)),
        triggers=triggers,
        unrecorded=unrecorded,
        behind=behind,
        disabled=frozenset(name for name, each in app.project.entities.items() if not each.enabled),
        late_slices=dict(_late_slices(app, own, late)),
        to_place=late.intersection(chain.from_iterable(to_place)),
        recorded_projects=recorded_projects(app) if unrecorded else (),
        faults=app.project.faults,
        withheld=withheld_triggers(app.project),
        rebuilds=rebuilds.due,
        unseen=(*rebuilds.unseen_beside(damaged), *gone.unseen),
        lost=lost_beside(gone.without_tainted(tainted), damaged),
        damaged=damaged,
        undeclared=tuple(undeclared_entities(app)),
        rows_changed=(*rebuilds.rows_changed_beside(told_messages(warned)), *gone.rows_changed),
        tainted=tainted,
        unwritable=write_fault(select_backend(app.manifest_settings)),
        next_steps=steps,
        is_waiting_first=bool(undone) and waits.come_first(timely, _failed(found)),
        is_corrected_first=bool(undone) and waits.corrected_come_first(bronze.corrected, found),
    )


def unrecorded_entities(app: App) -> Iterator[str]:
    """Yield the entities whose tables have commits, if the manifest has no item of the project at all.

    Those that only Spark can read are left out.
    """
    standings = read_standings(app, with_last_slices=False)
    known = (each.application for each in standings.entities if each.standing.counts)
    if any(known) or any(entity_of(app.project.name, each) is not None for each in standings.others):
        return
    for entity, places in placed_entities(app):
        with suppress(TargetError):  # a damaged table is told by itself
            is_local = places.silver.location is not None and table_log(app.lake, places.silver) is not None
            if is_local and chain_of(app, entity).lacks_commits:
                yield entity.called


def recorded_projects(app: App) -> tuple[str, ...]:
    """Return the names of the projects that the manifest has slices of."""
    standings = read_standings(app, with_last_slices=False)
    found = {project_of(each) for each in standings.others}
    return tuple(sorted(name for name in found if name is not None))


def _without_elsewhere(app: App, rows: Iterable[Row]) -> tuple[list[Row], tuple[Elsewhere, ...]]:
    """Return the rows of slices in their entity's bronze folder, and what is left of other folders.

    After a lake was moved, the records of its old place remain.
    """
    here = {
        application_of(app.project.name, entity): item_id(places.bronze).rstrip("/") + "/"
        for entity, places in placed_entities(app)
    }
    kept: list[Row] = []
    left: dict[str, list[Row]] = {}
    for row in rows:
        is_here = row.item.item_id.startswith(here.get(row.application, ""))
        is_open = row.lock is None and row.verdict in (Verdict.READY, Verdict.FAILED)
        (kept if is_here or not is_open else left.setdefault(row.owner, [])).append(row)
    return kept, tuple(
        Elsewhere(name, len(found), found[0].item.item_id.rpartition("/")[0]) for name, found in left.items()
    )


def _failed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield failed and damaged items once: for the application that failed, if it is listed."""
    of_item: dict[str, list[Row]] = {}
    for row in rows:
        if row.verdict in (Verdict.FAILED, Verdict.INVALID):
            of_item.setdefault(row.item.item_id, []).append(row)
    for found in of_item.values():
        yield next((row for row in found if row.is_cause), found[0])


def _awaited(app: App) -> Iterator[Row]:
    """Yield the slices of entities that other applications must process first; any may have added them."""
    for entity, places in placed_entities(app):
        after = applications_before(entity)
        if not after:
            continue
        application = application_of(app.project.name, entity)
        prefix = item_id(places.bronze) + "/"
        readiness = Readiness(application, after, has_waiting=True, prefix=prefix)
        for item in app.store.queue(readiness):
            missing = [str(each) for each in after if not item.is_processed_by(each)]
            row = Row(item, application, Verdict.READY, waits_for=", ".join(missing) or None)
            yield replace(row, name=entity.called)


def _without_owner(found: Iterable[Row], awaited: Iterable[Row]) -> Iterator[Row]:
    """Yield rows without those for everyone whose item is known to be an entity's."""
    owned = {row.item.item_id for row in awaited}
    return (row for row in found if row.application != ANYONE or row.item.item_id not in owned)


def _unlisted(awaited: Iterable[Row], found: Iterable[Row]) -> Iterator[Row]:
    """Yield the awaited rows that were not found already."""
    listed = {(row.item.item_id, row.application.key) for row in found}
    return (row for row in awaited if (row.item.item_id, row.application.key) not in listed)


def warned_targets(journal: Journal, newest_first: Iterable[Run]) -> Iterator[Warned]:
    """Yield the targets that ended with errors in the last run of each job up to each phase.

    A later run of fewer targets or phases, or one that continued another, stands only for what it has done.
    Slices that a check has failed are left out: they are told by themselves, until somebody resolves them.
    """
    has_run = recorded_phases(journal)

    def is_replaced(run: Run, later: Iterable[Run]) -> bool:
        whole = (each for each in later if has_steps(each, run) and not each.facts.get("resume"))
        return any(covers(each, run, has_run) for each in whole)

    @cache
    def done(run_id: str) -> frozenset[tuple[str, str]]:
        found = journal.targets(run_id)
        return frozenset((each["phase"], each["name"]) for each in found if not is_entry_undone(each))

    seen: dict[tuple[str, str], list[Run]] = {}
    for run in newest_first:
        later = seen.setdefault((run.project, run.job), [])
        if run.status == RUNNING:
            continue
        if run.status != Status.SUCCESS and not is_replaced(run, later):
            since = {step for each in later for step in done(each.run_id)}
            entries = (e for e in journal.targets(run.run_id) if (e["phase"], e["name"]) not in since)
            found = (each for each in entries if each["status"] == Status.SUCCESS_WITH_ERRORS)
            yield from (Warned(run, e) for e in found if e["error"] and not e.get(FAILED_ITEMS))
        later.append(run)


def told_messages(warned: Iterable[Warned]) -> set[str]:
    """Return the messages of warnings."""
    return {message for each in warned for _, message in each.parts}


def warned_beside(warned: Iterable[Warned], told: Iterable[Fault]) -> Iterator[Warned]:
    """Yield the warnings of runs without those of which every part is told by a look at the lake as well.

    One of slices that have changed may name fewer of them than the look has found, and other commands: those
    of the look count, as rows were added since.
    """
    faults = tuple(told)
    known = {message for fault in faults for _, message in fault.parts}
    changed = {item for fault in faults for item in fault.details.get("changed", ())}

    def is_told(each: Warned) -> bool:
        own = set(each.entry.get("changed", ()))
        is_seen = bool(own) and own <= changed
        return all(message in known or (is_seen and code == SLICES_CHANGED) for code, message in each.parts)

    return (each for each in warned if not is_told(each))


def _foreign(project: Project, waiting: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Yield the applications of waiting items that no run of the project processes, each with what does."""
    for application in dict.fromkeys(row.application for row in waiting):
        owner, entity = project_of(application), entity_of(project.name, application)
        if owner is not None and owner != project.name:
            yield str(application), f"for a run of the project {owner}; no run of {project.name} takes "
        elif entity is not None and entity not in project.entities and not project.faults:
            yield str(application), "until the project declares the entity; no run takes "


def _by_entity(app: App, rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of slices that runs of the project take, in order, by their entity."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: natural_key(row.slice)):
        if row.waits_for is None and row.application.is_of_entity and row.entity in app.project.entities:
            found.setdefault(row.entity or "", []).append(row)
    return found


def _late(app: App, waiting: Iterable[Row]) -> Iterator[str]:
    """Yield the ids of waiting items that a run would refuse as late."""
    for name, rows in _by_entity(app, waiting).items():
        with suppress(StorageUnavailable):  # what can't be read in bronze is told by itself
            late = late_items(app, app.project.entity(name), [row.item for row in rows])
            yield from (item.item_id for item in late)


def _late_slices(app: App, waiting: Iterable[Row], late: Container[str]) -> Iterator[tuple[str, LateSlices]]:
    """Yield the entities with waiting slices that are late, with what to type about these."""
    for name, rows in _by_entity(app, (row for row in waiting if row.item.item_id in late)).items():
        yield name, late_slices_of(app, app.project.entity(name), tuple(row.slice for row in rows))


def _refused(app: App, waiting: Iterable[Row]) -> Iterator[tuple[str, BackdatedError]]:
    """Yield the entities whose waiting slices have times that a run would refuse, with its error."""
    for name, rows in _by_entity(app, waiting).items():
        if (error := refused_waiting(app, name, rows[0].slice)) is not None:
            yield name, error


def _blocked(app: App, waiting: Iterable[Row]) -> Iterator[tuple[str, Fault]]:
    """Yield the entities of which a run would process no waiting slice, as the time of one is wrong."""
    for name, rows in _by_entity(app, waiting).items():
        entity = app.project.entity(name)
        if entity.enabled and (error := blocking_time(app, entity, [row.slice for row in rows])):
            yield name, error.as_fault()
