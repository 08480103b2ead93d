"""Deviations of bronze from the manifest and from the order of slices, and what to type about them.

A processed slice has other files than when it was discovered, slices can't be read, or the folder is gone.
They are what a plan says of the slices that are done, made from the listing that discovery makes anyway. A
run leaves changed slices to `apply`, which puts them in their places.

Source: `processing-manifest.md`, "Use cases" (command post). `changed_slices` is Lakewright's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from lakewright.due import facts as due
from lakewright.due.plan import Code, Plan, choices_of
from lakewright.due.slices import CHANGED, LATE, entity_plan
from lakewright.due.words import advice, finding_words, plan_faults
from lakewright.errors import Fault, LateSliceError
from lakewright.manifest.item import Item, is_changed
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.plan.reason import Code as StepCode
from lakewright.slices.chain import continued_in
from lakewright.slices.discovery import (
    BRONZE_UNREADABLE,
    Listing,
    natural_key,
    slice_name,
    slice_of_id,
)
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.reason import Reason

if TYPE_CHECKING:
    from lakewright.manifest.record import Application
    from lakewright.slices.chain import Place, SliceChain
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity


AS_DECLARED = "as declared"
"""Stands for what an entity declares now."""

_CLOSED = (Verdict.PROCESSED, Verdict.SKIPPED)


@dataclass(frozen=True, slots=True)
class Deviations:
    """How an entity's bronze folder deviates from what the manifest has recorded.

    Attributes:
        bronze: Where the slices are.
        listing: What the folder holds.
        plan: The plan of the slices that are done, and of those that are to be processed again, but are gone.
        skipped: Number of skipped slices in bronze, of those that the run takes.
        lost: That the folder does not exist although slices from it were processed; None if it is there.
    """

    bronze: SliceFolder
    listing: Listing
    plan: Plan
    skipped: int = 0
    lost: Fault | None = None

    @property
    def fault(self) -> Fault | None:
        """What an operator should look at; None for nothing."""
        faults = (*filter(None, (self.lost,)), *plan_faults(self.plan))
        return reduce(lambda one, other: one.and_also(other), faults) if faults else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user may want to know: slices that are being written, or were removed."""
        notes = self.noticed(Code.SKIPPED_CHANGED, *(() if self.lost else (Code.VANISHED,)))
        written = (each for each in self.plan.waiting if each.reason.code is Code.INCOMPLETE)
        return (*notes, *(each.reason.text for each in written))

    def noticed(self, *codes: Code) -> tuple[str, ...]:
        """Return the findings with one of these codes, as text."""
        return tuple(finding_words(each) for each in self.plan.findings if each.reason.code in codes)

    def idle_reason(self, takes: Callable[[str], bool], limits: str) -> Reason | None:
        """Return why a target has no slice to process; None if it has processed every slice that it takes.

        Args:
            takes: Whether the target takes a slice of that name.
            limits: What it takes, as it is declared.
        """
        number = sum(takes(each.name) for each in self.listing.slices)
        if self.listing.slices and not number:
            return Reason(StepCode.NONE_TAKEN, {"limits": limits})
        of = {"number": self.skipped, "is_part": number != len(self.listing.slices)}
        if self.skipped:
            return Reason(StepCode.ALL_SKIPPED if self.skipped == number else StepCode.OTHERS_SKIPPED, of)
        if self.listing.slices or self.lost or self is NOTHING:
            return None
        if not self.listing.exists:
            return Reason(StepCode.NO_FOLDER, {"folder": self.bronze.folder})
        return Reason(StepCode.NO_SLICES, {"pattern": str(self.bronze.pattern)})


NOTHING = Deviations(SliceFolder(""), Listing(), Plan())
"""Stands for a folder that was not looked at."""


def lost_folder_fault(chain: SliceChain, listing: Listing) -> Fault | None:
    """Return that a bronze folder is gone although slices from it are recorded; None if it is not.

    A slice that another application has only announced does not count.
    """
    verdicts = frozenset({Verdict.PROCESSED, Verdict.READY, Verdict.FAILED})
    query = Query(application=chain.application, verdicts=verdicts, prefix=chain.prefix)
    if listing.exists or all(item.fingerprint is None for item in chain.store.select(query)):
        return None
    return Fault(
        f"the bronze folder {chain.folder.folder} of {chain.entity.called} is gone; "
        "slices from it are recorded",
        remedy="Mount it, or correct bronze_path.",
        code=BRONZE_UNREADABLE,
        details={"alerts": [BRONZE_UNREADABLE], "slices": []},
    )


def find_deviations(
    chain: SliceChain,
    listing: Listing,
    items: Mapping[str, Item],
    *,
    gone: Iterable[str],
    takes: Callable[[str], bool],
) -> Deviations:
    """Return how bronze deviates from the recorded items of the slices that it holds.

    Args:
        chain: The slices of an entity.
        listing: What its folder holds.
        items: The items of the slices there, by id.
        gone: Names of slices that must be processed again, and are not there.
        takes: Whether the run takes a slice of that name.
    """
    verdicts = ((item, item.verdict(chain.application)) for item in items.values())
    return Deviations(
        chain.folder,
        listing,
        _plan(chain, listing, items, gone),
        skipped=sum(takes(slice_name(item)) for item, verdict in verdicts if verdict is Verdict.SKIPPED),
        lost=lost_folder_fault(chain, listing),
    )


def _plan(chain: SliceChain, listing: Listing, items: Mapping[str, Item], gone: Iterable[str]) -> Plan:
    bronze, held, asks = dict[str, due.Slice](), list[due.Slice](), chain.entity.settings.changed_slices
    records = {name: due.Record(due.RecordState.WAITING, "", place=natural_key(name)) for name in gone}
    for slice_ in listing.slices:
        item = items[slice_.item_id]
        verdict, was = item.verdict(chain.application), item.fingerprint or {}
        if verdict in _CLOSED and is_changed(was, slice_.fingerprint):  # the plan says nothing of others
            before = slice_fact(slice_.name, was)
            bronze[slice_.name] = slice_fact(slice_.name, slice_.fingerprint)
            records[slice_.name] = due.Record(due.RecordState(verdict), before.content)
            held += [before] if verdict is Verdict.PROCESSED else []
    entity = due.Entity(
        chain.entity.called,
        AS_DECLARED,
        bronze=bronze,
        table=due.Table(tuple(held), AS_DECLARED),
        records=records,
        changed=due.Verb.KEEP if asks == "keep" else None,
        incomplete=listing.incomplete,
        unreadable=listing.unreadable,
        vanished=vanished_slices(chain, items),
    )
    steps, findings = entity_plan(entity, due.Facts(), frozenset())
    is_decided = asks == "take"
    return Plan(tuple(replace(s, choices=()) if is_decided else s for s in steps), findings)


def slice_fact(name: str, fingerprint: Mapping[str, Any] | None, now: Slice | None = None) -> due.Slice:
    """Return a slice as a fact of a plan; equal to that in bronze now unless its files have changed."""
    if now is not None and not is_changed(fingerprint or {}, now.fingerprint):
        fingerprint = now.fingerprint
    text = json.dumps(dict(fingerprint or {}), sort_keys=True, default=str)
    content = hashlib.sha256(text.encode()).hexdigest()[:12]
    return due.Slice(name, content, natural_key(name), 0 if now is None else now.size)


def changed_items(items: Iterable[Item], slices: Iterable[Slice]) -> Iterator[Item]:
    """Yield the items whose slice has another fingerprint now than the one that is recorded."""
    present = {slice_.item_id: slice_ for slice_ in slices}
    for item in items:
        slice_, recorded = present.get(item.item_id), item.fingerprint
        if slice_ is not None and recorded is not None and is_changed(recorded, slice_.fingerprint):
            yield item


def later_processed(name: str, items: Iterable[Item], application: Application) -> tuple[Item, ...]:
    """Return the processed items whose slices come after one of a name, in order."""
    after = natural_key(name)
    found = {natural_key(slice_name(item)): item for item in items if item.is_processed_by(application)}
    return tuple(found[key] for key in sorted(found) if key > after)


def vanished_slices(chain: SliceChain, present: Mapping[str, Item]) -> tuple[str, ...]:
    """Return the slices that an application processed and that are not among the items in bronze, by id.

    Items of a place that the lake was moved from don't count if their slices have items in bronze. The items
    are not read: their number grows with time.
    """
    store, application = chain.store, chain.application
    there = sum(1 for item in present.values() if item.verdict(application) is Verdict.PROCESSED)
    recorded = store.counts().get((application, Verdict.PROCESSED), 0)
    if recorded > there:  # the items may be as they are once a run has recorded what the table's log shows
        now = store.read(list(present)).values()
        there = max(there, sum(1 for item in now if item.verdict(application) is Verdict.PROCESSED))
    if recorded <= there:
        return ()
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}))
    gone = [each for each in store.candidates(query) if each not in present]
    left = set(gone) - continued_in(store, gone, chain.bronze).keys()
    return tuple(sorted(map(slice_of_id, left), key=natural_key))


def effect_of(entity: Entity, strategy: Strategy) -> due.Effect:
    """Return how an entity's slices make its table: whether it makes a difference in which order they come.

    Without partitions, only the last slice of `full` leaves rows. With `sequence_by`, a merge keeps the newer
    rows, but not the absence of records that later slices lack.
    """
    settings = entity.settings
    if strategy is Strategy.FULL:
        return due.Effect.IN_ORDER if entity.partition_columns else due.Effect.LAST
    is_sorted = strategy is Strategy.MERGE and settings.sequence_by is not None
    return due.Effect.ANY_ORDER if is_sorted and not settings.asserts_absence else due.Effect.IN_ORDER


def late_error(entity: Entity, strategy: Strategy, name: str, last: Place | None) -> LateSliceError:
    """Return the error of a late slice; `last` is the place of the last processed one, if it is known."""
    after = None if last is None else last[-1][-1]
    return LateSliceError(
        f"the slice {name} is older than {after or 'another one'}, which is already processed",
        remedy=late_advice(entity, strategy, name),
        details={"slice": name, "after": after},
        subject=name,
    )


def late_advice(entity: Entity, strategy: Strategy, name: str) -> str:
    """Return what to type about a late slice."""
    is_held = entity.settings.late_slices == "hold"
    is_asked = is_held and effect_of(entity, strategy) is due.Effect.IN_ORDER
    return advice(choices_of(due.Subject(entity.called, name), "", LATE if is_asked else (), Code.LATE_SLICE))


def changed_advice(entity: Entity, name: str) -> str:
    """Return what to type about a slice whose files have changed since it was processed."""
    verbs = () if entity.settings.changed_slices == "take" else CHANGED
    return advice(choices_of(due.Subject(entity.called, name), "", verbs, Code.CHANGED_SLICE))
