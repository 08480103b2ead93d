"""What a look at bronze adds to a project's status: what is new, changed, gone, or can't be read there.

Only folders of this machine are looked at: for others, Spark would have to be started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, StorageUnavailable
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.paths import local_path
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import command
from lakewright.manifest.store import Query
from lakewright.slices.application import application_of
from lakewright.slices.changed import find_deviations, is_folder_missed, vanished_slices
from lakewright.slices.context import ALL_SLICES, ProcessingContext, ProcessingOptions, SliceSelection
from lakewright.slices.deviations import CorrectedSlices, Deviations, changed_items
from lakewright.slices.discover import (
    Listing,
    called_name,
    item_id,
    list_bronze,
    natural_key,
    slice_name,
)
from lakewright.slices.late_advice import LateSlices
from lakewright.slices.moved_lake import moved_lake_error
from lakewright.slices.other_runs import (
    declared_strategy,
    declared_time,
    find_other_runs,
    processing_jobs,
)
from lakewright.spec.models.entity import Entity
from lakewright.spec.words import counted, first_of
from lakewright.usecases.placed import chain_of, placed_entities
from lakewright.usecases.slice_times.declared_times import declared_slice_time, late_slices_of
from lakewright.usecases.slice_times.refused_times import blocking_time
from lakewright.usecases.staleness.readers import dependents
from lakewright.usecases.staleness.repeated_appends import commands_adding_once

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import SliceChain

__all__ = ["Arrived", "BronzeStatus", "Vanished", "changed_fault", "look_at_bronze"]

SLICES_MISSING = "slices_missing"
"""The code of the fault that slices which wait are gone."""

MOST_NAMED = 10

_NONE = SliceSelection("")
"""Takes no slice."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Slices of an entity in bronze that no run has seen yet.

    Attributes:
        count: Number of the complete ones.
        slices: Names of the first of them.
        incomplete: Names of slices that are still being written.
        late: Those of `slices` that a run would refuse as late, with what to type; None for none.
        refused: Why a run would take none of them, such as that the entity is disabled; None if it would.
        commands: If no target takes all slices of the entity, the commands that process the others.
    """

    entity: str
    count: int
    slices: tuple[str, ...]
    incomplete: tuple[str, ...] = ()
    late: LateSlices | None = None
    commands: tuple[Command, ...] = ()
    refused: Fault | None = None

    @property
    def is_refused(self) -> bool:
        """Whether a run would refuse some of them."""
        return self.late is not None or self.refused is not None

    @property
    def late_names(self) -> tuple[str, ...]:
        """Names of the late slices."""
        return () if self.late is None else self.late.names

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        named = {"slices": self.slices, "incomplete": self.incomplete, "late": self.late_names}
        typed = () if self.late is None else (self.late.command,)
        lists = {**named, "do": (*typed, *self.commands)}
        told = {"entity": self.entity, "count": self.count} | {key: [*each] for key, each in lists.items()}
        return told | {"refused": None if self.refused is None else self.refused.as_json()}


@dataclass(frozen=True, slots=True)
class Vanished:
    """Processed slices of an entity that are no longer in bronze.

    Attributes:
        count: Number of these slices.
        slices: Names of the first of them.
    """

    entity: str
    count: int
    slices: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {"entity": self.entity, "count": self.count, "slices": list(self.slices)}


@dataclass(frozen=True, slots=True)
class BronzeStatus:
    """How bronze deviates from what the manifest has recorded.

    Attributes:
        arrived: Slices that no run has seen yet, by entity.
        vanished: Processed slices that are gone, by entity.
        corrected: Skipped slices that changed since they were recorded, by entity.
        changed: A fault for each entity with slices that changed since they were processed, with the commands
            to type; its details name the items.
        missing: A fault for each entity with slices that wait and are gone.
        unreadable: A fault for each folder that can't be read.
        blocked: The entities of which a run would process no slice, as the time of one is wrong, each with
            the fault.
    """

    arrived: tuple[Arrived, ...] = ()
    vanished: tuple[Vanished, ...] = ()
    corrected: tuple[CorrectedSlices, ...] = ()
    changed: tuple[Fault, ...] = ()
    missing: tuple[Fault, ...] = ()
    unreadable: tuple[Fault, ...] = ()
    blocked: tuple[tuple[str, Fault], ...] = ()

    def with_all(self, other: BronzeStatus) -> BronzeStatus:
        """Return this status and that of another entity."""
        return BronzeStatus(
            self.arrived + other.arrived,
            self.vanished + other.vanished,
            self.corrected + other.corrected,
            self.changed + other.changed,
            self.missing + other.missing,
            self.unreadable + other.unreadable,
            self.blocked + other.blocked,
        )


_DISABLED = Fault(
    "the entity is disabled", remedy="Set enabled: true where it, or its connection, is declared."
)


def look_at_bronze(app: App, recovered: Mapping[str, Item]) -> BronzeStatus:
    """Return how bronze deviates from the manifest; of each entity's folder on this machine.

    Args:
        app: The project.
        recovered: Items that only tables know of, as the next run records them, by id.
    """
    found, told = BronzeStatus(), dict[str, str]()
    for entity, _ in placed_entities(app):
        try:
            look = _look(app, chain_of(app, entity), recovered)
        except StorageUnavailable as error:
            found = found.with_all(BronzeStatus(unreadable=(error.as_fault(),)))
            continue
        look = replace(
            look,
            changed=tuple(_beside(each, entity.called, told) for each in look.changed),
            corrected=tuple(each for each in look.corrected if told.keys().isdisjoint(each.item_ids)),
        )
        for item in (*(i for fault in look.changed for i in fault.details["changed"]), *_corrected(look)):
            told.setdefault(item, entity.called)
        found = found.with_all(look)
    return found


def _corrected(look: BronzeStatus) -> Iterator[str]:
    return (item_id for each in look.corrected for item_id in each.item_ids)


def _beside(fault: Fault, entity: str, told: Mapping[str, str]) -> Fault:
    """Return the fault of changed slices, of which another entity that reads the same folder was told.

    A slice is requeued and accepted for all entities.

    Args:
        fault: The fault.
        entity: What commands call its entity.
        told: What commands call the entities of which slices were told, by the ids of these.
    """
    first = next((told[each] for each in fault.details["changed"] if each in told), None)
    if first is None:
        return fault
    return replace(
        fault,
        remedy=Phrase(
            f"What is named for {first} requeues or accepts it for {entity}, too, as they read "
            "one folder: type that first. ",
            Command("status"),
            f" then names what to type for {entity}.",
        ),
    )


def _look(app: App, chain: SliceChain, recovered: Mapping[str, Item]) -> BronzeStatus:
    entity, bronze = chain.entity, chain.bronze
    if local_path(bronze) is None:
        return BronzeStatus()
    listing = list_bronze(bronze, app.lake)
    if not listing.exists and is_folder_missed(chain):
        lost = Deviations(entity=entity.called, bronze=bronze, listing=listing, is_lost=True).fault
        return BronzeStatus(unreadable=() if lost is None else (lost,))
    ids = [item_id(slice_.path) for slice_ in listing.slices]
    present = {**app.store.read(ids), **{name: recovered[name] for name in ids if name in recovered}}
    new = tuple(slice_.name for slice_ in listing.slices if item_id(slice_.path) not in present)
    late = _late(chain, new[:MOST_NAMED], present) if new else ()
    told_late = late_slices_of(app, entity, late) if late else None
    moved = moved_lake_error(chain, set(new))
    told = moved.as_fault() if moved is not None else None if entity.enabled else _DISABLED
    blocked = _blocked(app, chain, new, present) if told is None else None
    told = told or blocked
    incomplete = listing.incomplete[:MOST_NAMED]
    arrived = (Arrived(entity.called, len(new), new[:MOST_NAMED], incomplete, told_late, refused=told),)
    gone = vanished_slices(chain, present)
    vanished = (Vanished(entity.called, gone.count, tuple(islice(gone.names, MOST_NAMED))),)
    found = _changed(app, chain, listing, present)
    fault, corrected = (None, None) if found is None else (found.fault, found.corrected)
    missing = None if moved is not None else _missing(chain, present, listing)
    return BronzeStatus(
        arrived=arrived if new or listing.incomplete else (),
        vanished=vanished if gone.count and moved is None else (),
        corrected=() if corrected is None else (corrected,),
        changed=() if fault is None else (fault,),
        missing=() if missing is None else (missing,),
        blocked=() if blocked is None else ((entity.called, blocked),),
    )


def _missing(chain: SliceChain, present: Mapping[str, Item], listing: Listing) -> Fault | None:
    """Return that slices which wait are gone from bronze, so that a run fails them; None if none is.

    One of the first revision without a fingerprint was announced by another program, and is still to come.
    """
    query = Query(chain.application, frozenset({Verdict.READY}), prefix=chain.prefix)
    # Those are told by themselves that can't be read, or are not complete.
    there = {*listing.incomplete, *listing.unreadable}
    gone = [
        called_name(chain.entity.called, item)
        for item in chain.store.select(query)
        if item.item_id not in present
        and slice_name(item) not in there
        and (item.revision > 1 or item.fingerprint is not None)
    ]
    if not gone:
        return None
    wait, are, them = ("waits", "is", "it") if len(gone) == 1 else ("wait", "are", "them")
    names = first_of([each.partition("/")[2] for each in gone], MOST_NAMED)
    skip = command("skip", *gone)
    return Fault(
        f"{counted(len(gone), 'slice')} of {chain.entity.called} {wait}, but {are} gone from "
        f"{chain.bronze}: {names}",
        remedy=Phrase(f"Bring {them} back before the next run, which would fail {them}, or type ", skip, "."),
        code=SLICES_MISSING,
    )


def _blocked(app: App, chain: SliceChain, new: Sequence[str], present: Mapping[str, Item]) -> Fault | None:
    """Return the fault by which a run would process none of an entity's slices, or None."""
    ready = (item for item in present.values() if item.verdict(chain.application) is Verdict.READY)
    waiting = sorted((*new, *map(slice_name, ready)), key=natural_key)
    late = frozenset(_late(chain, waiting, present)) if waiting else ()
    error = blocking_time(app, chain.entity, [name for name in waiting if name not in late])
    return None if error is None else error.as_fault()


def _late(chain: SliceChain, names: Sequence[str], present: Mapping[str, Item]) -> tuple[str, ...]:
    """Return those of an entity's new slices that a run would refuse, as later ones are processed."""
    if chain.entity.settings.late_slices == "apply":
        return ()
    last = chain.last_processed(present)
    return () if last is None else tuple(name for name in names if natural_key(name) < last)


def changed_fault(app: App, entity: Entity) -> Fault | None:
    """Return the slices of an entity that changed since they were processed, with the commands to type.

    None if there is none.

    Raises:
        StorageUnavailable: The bronze folder can't be read.
    """
    chain = chain_of(app, entity)
    listing = list_bronze(chain.bronze, app.lake)
    items = app.store.read([item_id(each.path) for each in listing.slices])
    found = _changed(app, chain, listing, items)
    return None if found is None else found.fault


def _changed(app: App, chain: SliceChain, listing: Listing, present: Mapping[str, Item]) -> Deviations | None:
    """Return the deviations of processed and skipped slices that have changed; None if none has."""
    verdicts = (Verdict.PROCESSED, Verdict.SKIPPED)
    done = (item for item in present.values() if item.verdict(chain.application) in verdicts)
    if next(changed_items(done, listing.slices), None) is None:
        return None
    found = find_deviations(_context(app, chain.entity), chain.entity, listing, present)
    return replace(found, listing=Listing(listing.slices))


def _context(app: App, entity: Entity) -> ProcessingContext:
    """Return the context of a run of a job that processes an entity, in an instance that takes no slice.

    Deviations are thereby told as in the report of a run that leaves them to others.
    """
    jobs = list(processing_jobs(app.project, entity.called))
    options = ProcessingOptions(
        other_runs=partial(find_other_runs, app.project, entity.called, dependents=partial(dependents, app)),
        commands=partial(commands_adding_once, app),
        declared_time=partial(declared_slice_time, app, entity.called),
    )
    timed = [each for each in jobs if declared_time(each[1]) is not None]
    for job, declared in (*timed, *jobs)[:1]:
        is_limited = not {"slices", "until"}.isdisjoint(declared)
        options = replace(
            options,
            strategy=declared_strategy(declared, entity),
            processing_time=declared_time(declared),
            scope=app.project.job_scope(job),
            selection=_NONE if is_limited else ALL_SLICES,
        )
    application = application_of(app.project.name, entity)
    return ProcessingContext(app.lake, app.ledger, app.holder, application, app.store.now, options=options)
