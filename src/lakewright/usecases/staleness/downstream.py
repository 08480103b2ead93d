"""Targets that read an entity's table: they are dirty once the table has changed without its job knowing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import LakewrightError, StoreUnavailable
from lakewright.errors.phrase import Command, Phrase, Placeholder
from lakewright.manifest.item import Verdict
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.record import State
from lakewright.manifest.store import Query, Write
from lakewright.plan.phase import Phase
from lakewright.run.kept_rows import kept_rows
from lakewright.run.leftovers import is_built
from lakewright.run.outputs import is_gone
from lakewright.slices.application import application_of
from lakewright.slices.discover import called_name, slice_name
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.spec.words import first_of
from lakewright.usecases.staleness.cut_off_builds import cut_off_builds
from lakewright.usecases.staleness.earlier_builds import (
    RUNS,
    Arrival,
    built_before,
    built_instances,
    first_arrivals,
)
from lakewright.usecases.staleness.emptied import added_rows_of, kept_rows_of, places_of
from lakewright.usecases.staleness.left_partitions import (
    left_instances,
    recovered_at,
    recovered_since,
    untold_instances,
)
from lakewright.usecases.staleness.overwritten import newest_writers, overwritten_output
from lakewright.usecases.staleness.readers import readers_of
from lakewright.usecases.staleness.stale_instances import Arrived, stale_instances

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from lakewright.manifest.item import Item
    from lakewright.manifest.journal import Taint
    from lakewright.manifest.store import Put
    from lakewright.run.result import RunResult
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = [
    "arrival_answered",
    "downstream_taints",
    "forget_overwritten",
    "recovered_words",
    "table_words",
    "taint_after_processing",
    "tainted_words",
]

MOST_NAMED = 3

log = logging.getLogger(__name__)


def downstream_taints(
    app: App, entity: Entity, reason: str, arrivals: Sequence[Arrival] = (), run_id: str | None = None
) -> tuple[Put, ...]:
    """Return the taints of all targets that are built from an entity's table, in each instance that was run.

    Of instances that overwrite the same output, it is the last one. What a run that was cut off may have
    written counts, too.

    These are the targets that read it, and those that read what these write, in whatever jobs.

    Args:
        app: The project.
        entity: The entity.
        reason: Why they are dirty.
        arrivals: If only slices make them dirty, the first processing of these: instances that were last
            built before are left out, if the history has all builds since.
        run_id: The run that has changed the table: it has read what is there now.
    """
    found: dict[str, Put] = {}
    readers = readers_of(app, entity)
    lost = recovered_at(app, entity) if any(readers.values()) else None
    if arrivals and any(readers.values()):
        recovered = recovered_since(app, entity, min(each.at for each in arrivals))
        if recovered is not None:  # builds since the slices came are not in the history
            arrivals, lost = (), recovered
    for job, names in readers.items():
        declared = app.project.jobs[job]
        told = reason if lost is None else Phrase(f"{reason}; ", _recovered(lost, [declared]))
        kept = kept_rows_of(app, declared, names) if names else {}
        earlier = built_before(app, job, names, arrivals) if arrivals and names else frozenset()
        # Where the history tells all builds, what it does not tell was built before the slices came.
        left = () if arrivals else left_instances(app, declared, names)
        # A table that others fill tells that it was built; without one, it never was.
        left = [e for e in left if e[0] not in kept or not is_gone(places_of(app, declared, *e))]
        built = [*built_instances(app, declared, RUNS, names), *left]
        if lost is not None and not arrivals:
            built += untold_instances(app, declared, names - {name for name, _ in built})
        for name, parameters in newest_writers(app, declared, built):
            if (name, tuple(sorted(parameters.items()))) in earlier:
                continue
            place = TargetPhase(app.project.name, name, Phase.BUILD.value, parameters)
            words = kept.get(name)
            put = place.tainted(told, kept=kept_rows(told, words))
            found[put.key] = put
        since = min((each.at for each in arrivals), default=None)
        for taint in cut_off_builds(app, declared, kept.keys(), run_id=run_id, since=since):
            put = _with_former_rows(taint, told, kept[taint.place.target])
            found[put.key] = put
    return tuple(found.values())


def _with_former_rows(taint: Taint, reason: str, words: str, arrived: tuple[str, ...] = ()) -> Put:
    """Return the taint of a build that was cut off after it may have written rows that are out of date."""
    kept = kept_rows(reason, words)
    return taint.place.tainted(reason, kept=kept, append_id=taint.append_id, arrived=arrived)


def table_words(entity: Entity) -> str:
    """Return how reasons name the table of an entity: they are kept, and the lake may be moved."""
    return f"the table of {entity.called}"


def recovered_words(app: App, entity: Entity) -> str | None:
    """Return that builds from before a lost manifest was recovered are not known; None if it was not.

    Nothing is said if nothing is built from the entity's table.
    """
    readers = {job: names for job, names in readers_of(app, entity).items() if names}
    at = recovered_at(app, entity) if readers else None
    if at is None:
        return None
    return _recovered(at, [app.project.jobs[job] for job in readers])


def _recovered(at: datetime, jobs: Sequence[Job]) -> str:
    typed = [Command("job", job.name, "build", *_placeholders(job), "--force") for job in jobs]
    commands = first_of(typed, MOST_NAMED)
    return Phrase(
        f"builds from before {at.isoformat(timespec='seconds')}, when the manifest was "
        "recovered, are known only by the partitions that they left: build others again with ",
        commands,
    )


def _placeholders(job: Job) -> list[Placeholder]:
    return [Placeholder(f"{each.name}=<{each.name}>") for each in job.parameters]


def tainted_words(taints: Sequence[Put], recovered: str | None = None) -> str | None:
    """Return which targets these taints make dirty, and where the commands stand; None without taints.

    Args:
        taints: The taints.
        recovered: What `recovered_words` returns.
    """
    names = list(dict.fromkeys(str(put.value["place"]["target"]) for put in taints if put.value))
    if not names:
        return recovered
    kept = [str(put.value["place"]["target"]) for put in taints if put.value and put.value.get("kept")]
    first = f"; {first_of(list(dict.fromkeys(kept)), MOST_NAMED)} must be emptied first" if kept else ""
    told = f"to be built again, as built from it: {first_of(names, MOST_NAMED)}{first}"
    return told if recovered is None else Phrase(told, "; ", recovered)


def taint_after_processing(
    app: App, entity: Entity, items: Sequence[str], run_id: str | None = None
) -> StoreUnavailable | None:
    """Taint the targets built from an entity's table that slices made out of date.

    Which rows of the table an instance reads is not known. A slice that was processed again taints each
    instance that was built since it first came. A new one taints those built before that may read it: the
    job that builds them would find them filled, as the slice is processed already.

    Args:
        app: The project.
        entity: The entity.
        items: Ids of the items whose processing made a commit, in its order.
        run_id: The run of a job that processed them: what it has built is not tainted.

    Returns:
        That the manifest failed meanwhile, and what to build again by hand; None if it did not.
    """
    if not items:
        return None
    try:
        _taint_after_processing(app, entity, items, run_id)
    except StoreUnavailable as error:
        return _untainted_error(app, entity, error)
    except LakewrightError as error:  # a failure to remember it must not fail what is committed already
        log.warning("%s: the targets built from it could not be marked as dirty: %s", entity.name, error)
    return None


def _untainted_error(app: App, entity: Entity, error: StoreUnavailable) -> StoreUnavailable | None:
    """Return the error that names the targets which could not be tainted; None if none reads the table."""
    readers = {job: sorted(names) for job, names in readers_of(app, entity).items() if names}
    if not readers:
        return None
    typed = [
        Command("job", job, "build", *(f"--dirty={name}" for name in names)) for job, names in readers.items()
    ]
    named = first_of(sorted({name for names in readers.values() for name in names}), MOST_NAMED)
    return StoreUnavailable(
        f"{entity.called}: what is built from it could not be marked as dirty ({named}): {error.message}",
        remedy=Phrase(
            "Once the manifest answers, build it again, for each instance: ", Phrase.joined(", ", typed), "."
        ),
    )


def _taint_after_processing(app: App, entity: Entity, items: Sequence[str], run_id: str | None) -> None:
    readers = readers_of(app, entity)
    if not any(readers.values()):
        return
    new: list[Item] = []
    again: list[Item] = []
    present = app.store.read(items)
    for item in (present[each] for each in items if each in present):
        is_again = item.revision > 1 and _was_processed(app, entity, item)
        (again if is_again else new).append(item)
    if new:
        _taint_after_arrival(app, entity, readers, Arrived.of(app, entity, new, run_id))
    if again:
        _taint_after_repetition(app, entity, again, run_id)


def _taint_after_arrival(
    app: App, entity: Entity, readers: Mapping[str, frozenset[str]], arrived: Arrived
) -> None:
    """Taint what new slices made out of date; what is tainted already keeps its reason."""
    reason = _reason(entity, arrived.names, "processed since it was built")
    called = tuple(called_name(entity.called, name) for name in arrived.names)
    added: dict[str, str] = {}
    cut_off: dict[str, list[Taint]] = {}
    for job, names in readers.items():
        declared = app.project.jobs[job]
        added |= (own := added_rows_of(app, declared, names))
        cut_off[job] = list(cut_off_builds(app, declared, own.keys(), run_id=arrived.run_id)) if own else []
    stale = [
        TargetPhase(app.project.name, name, Phase.BUILD.value, parameters)
        for name, parameters in stale_instances(app, entity, readers, arrived, cut_off)
    ]
    begun = {taint.place.key: taint for taints in cut_off.values() for taint in taints}
    tainted = {each.place.key for each in app.journal.taints(app.project.name)} if stale else set()
    puts = []
    for place in stale:
        if place.key in begun:
            puts.append(_with_former_rows(begun[place.key], reason, added[place.target], called))
        elif place.key not in tainted:
            words = added.get(place.target)
            puts.append(place.tainted(reason, kept=kept_rows(reason, words), arrived=called))
    if puts:
        app.store.write(Write(puts=tuple(puts)))


def _taint_after_repetition(app: App, entity: Entity, again: Sequence[Item], run_id: str | None) -> None:
    reason = _reason(entity, [slice_name(item) for item in again], "processed again")
    arrivals = first_arrivals(app, application_of(app.project.name, entity), again)
    puts = downstream_taints(app, entity, reason, arrivals or (), run_id)
    entries = app.journal.targets(run_id) if run_id is not None else ()
    built = {each.key for each in _built(app, entries)}
    if left := tuple(put for put in puts if put.key not in built):
        app.store.write(Write(puts=left))


def _reason(entity: Entity, names: Sequence[str], done: str) -> str:
    """Return that slices were processed, and what that may mean for the targets that read their table."""
    verb = "was" if len(names) == 1 else "were"
    named = f"{first_of(names, MOST_NAMED)} of {entity.called} {verb} {done}"
    return f"{named}; rows that the target reads may have changed"


def arrival_answered(app: App, entity: Entity, item: Item) -> tuple[Put, ...]:
    """Return the puts that remove taints of which the arrival of a slice was the reason, as it is undone.

    There are none if a slice of the project has been processed since: what is tainted keeps its first reason.
    """
    arrived = (called_name(entity.called, item),)
    taints = [each for each in app.journal.taints(app.project.name) if each.arrived == arrived]
    if not taints:
        return ()
    application = application_of(app.project.name, entity)
    own = [mark.since for mark in item.processed if mark.application.covers(application)]
    processed = app.store.select(Query(verdicts=frozenset({Verdict.PROCESSED})))
    since = (mark.since for each in processed if each.item_id != item.item_id for mark in each.processed)
    if not own or any(at > min(own) for at in since):
        return ()
    return tuple(each.place.untainted() for each in taints)


def forget_overwritten(app: App, before: Iterable[Taint], run: RunResult) -> None:
    """Remove taints of instances whose output a run has overwritten by another instance.

    Args:
        app: The project.
        before: The taints from before the run; those that came meanwhile stay.
        run: The run.
    """
    left = [each for each in before if each.place.phase == Phase.BUILD.value and each.run_id is None]
    try:
        gone = tuple(_overwritten(app, left, run)) if left else ()
        if gone:
            app.store.write(Write(puts=gone))
    except LakewrightError as error:  # what stays dirty for no reason must not fail the run that has ended
        log.warning("targets that are up to date could not be marked as such: %s", error)


def _overwritten(app: App, taints: Iterable[Taint], run: RunResult) -> Iterator[Put]:
    job = app.project.job(run.job)
    built = list(_built(app, app.journal.targets(run.run_id)))
    for taint in taints:
        name, parameters = taint.place.target, taint.place.parameters
        alike = [
            each for each in built if each.target == name and each.parameters.keys() == parameters.keys()
        ]
        if alike and parameters and all(text == HIDDEN for text in parameters.values()):
            yield taint.place.untainted()  # in which instance it was built is not known
            continue
        output = overwritten_output(app, job, name, parameters) if alike else None
        if output and any(overwritten_output(app, job, name, each.parameters) == output for each in alike):
            yield taint.place.untainted()


def _was_processed(app: App, entity: Entity, item: Item) -> bool:
    """Return whether an earlier revision of an item was processed into the entity's table."""
    application = application_of(app.project.name, entity)
    times = sum(
        record.state is State.PROCESSED and record.application.key == application.key
        for record in app.store.records(item.item_id)
    )
    return times > 1


def _built(app: App, entries: Iterable[Mapping[str, Any]]) -> Iterator[TargetPhase]:
    """Yield the targets that entries of the history say to have been built."""
    for each in entries:
        if is_built(each):
            yield TargetPhase(app.project.name, each["name"], each["phase"], each.get("instance", {}))
