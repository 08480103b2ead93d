"""The slice chain: the slices that a table holds, as its log and the manifest have them, in order.

Commits that a RESTORE reverted do not count. A commit that holds several slices counts once for each.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.lake.commit import (
    Commit,
    empties,
    has_changed_rows,
    is_superseded,
    read_commits,
    replaces_all,
    restored_version,
    slice_key,
)
from lakewright.lake.observation import last_commit_number, observe_table, table_log
from lakewright.manifest.claim import COUNTER
from lakewright.manifest.item import Item, is_changed
from lakewright.manifest.record import Author, Draft, State, parse_instant
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.discovery import discovered, item_id, natural_key, slice_name, slice_of_id
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.strategies.past_load import past_app

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.ledger import DiscoveredSlice, Ledger
    from lakewright.manifest.record import Application
    from lakewright.manifest.rewind import Rewind
    from lakewright.manifest.store import Store
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address, Places


@dataclass(frozen=True, slots=True)
class AppliedSlice:
    """One slice in the table.

    Attributes:
        item_id: Its item.
        number: The number of its commit.
        content: What the commit says of it: `fingerprint`, `processingTime`, `strategy`, `watermarks`,
            `metrics`.
    """

    item_id: str
    number: int
    content: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the slice."""
        return slice_of_id(self.item_id)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The fingerprint with which it was processed; empty if that is not known."""
        return self.content.get("fingerprint") or {}

    @property
    def at(self) -> datetime | None:
        """The processing time; None if that is not known."""
        time = self.content.get("processingTime")
        return None if time is None else parse_instant(time)

    @property
    def is_unwritten(self) -> bool:
        """Whether the manifest says that the slice changed nothing, so that it has no commit."""
        return "delta_version" in self.content and self.content["delta_version"] is None


OPEN = (Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID)
"""The verdicts of items that are not finished."""

HeldSlices: TypeAlias = tuple[Commit, tuple[AppliedSlice, ...]]
"""A commit, and the slices that it holds in the order in which they were applied."""


def counter_of(silver: Address) -> str:
    """Return the key of the counter that numbers the commits to a table."""
    return f"table {silver}"


@dataclass(frozen=True)
class SliceChain:
    """The slices of an entity: in bronze, in the manifest, and in its table, whose log is read once.

    A commit names the item that its slice had then. If the lake was moved since, and `manifest move` has
    copied the records, the slice has the item that it has in the bronze folder now.

    Attributes:
        application: The application that processes the slices.
    """

    lake: Lake
    ledger: Ledger
    entity: Entity
    application: Application

    @cached_property
    def places(self) -> Places:
        """Where the entity's slices and rows are."""
        return self.entity.places(self.lake.settings)

    @property
    def bronze(self) -> str:
        """What the places of the slices begin with."""
        return self.places.bronze

    @property
    def folder(self) -> SliceFolder:
        """Where the slices are."""
        return self.places.slices

    @property
    def silver(self) -> Address:
        """The table."""
        return self.places.silver

    @property
    def store(self) -> Store:
        """The manifest's records."""
        return self.ledger.store

    @property
    def app(self) -> str:
        """The application id of the slices' commits."""
        return str(self.application)

    @property
    def prefix(self) -> str:
        """What the ids of the slices' items begin with."""
        return f"{item_id(self.bronze)}/"

    @property
    def last_number(self) -> int | None:
        """The number of the application's last commit to the table; None if there is none."""
        return last_commit_number(self.lake, self.silver, self.app)

    @property
    def last_given_number(self) -> int:
        """The last number that the manifest gave to a commit to the table; 0 for none."""
        document = self.store.document(COUNTER, counter_of(self.silver))
        return int(document.value["last"]) if document is not None else 0

    @property
    def lacks_commits(self) -> bool:
        """Whether the table has commits of the application that the manifest has not numbered."""
        last = self.last_number
        return last is not None and last > self.last_given_number

    def has_landed(self, item: Item) -> bool:
        """Return whether an earlier attempt at an item committed, or may have committed."""
        number = item.tokens.get(self.application.key)
        last = None if number is None else self.last_number
        if number is None or last is None or last < number:
            return False
        return not is_superseded(self.lake, self.silver, self.app, number, item.item_id)

    @property
    def rewind(self) -> Rewind | None:
        """The rewind of the table that has begun and is not recorded; None if there is none."""
        return self.ledger.rewind_of(counter_of(self.silver))

    @property
    def first_processed(self) -> Item | None:
        """A slice that counts as processed; None if there is none."""
        return first_processed(self.store, self.application)

    def last_processed(self, present: Mapping[str, Item] | None = None) -> Place | None:
        """Return the place of the last slice of the folder that the application has processed, or None.

        Args:
            present: The items of all slices in the folder, if they are known. Unless more slices are recorded
                as processed, no others are looked at: their number grows with time.
        """
        there, processed = present or {}, Verdict.PROCESSED
        done = [place_of(item) for item in there.values() if item.verdict(self.application) is processed]
        if present is None or self.store.counts().get((self.application, processed), 0) > len(done):
            last = _last_of_others(self.store, self.application, self.prefix, there)
            done += [] if last is None else [last]
        return max(done, default=None)

    def items(self, *verdicts: Verdict) -> list[Item]:
        """Return the items of the bronze folder with one of these verdicts, whoever processes them."""
        found = self.store.select(Query(verdicts=frozenset(verdicts), prefix=self.prefix))
        return [item for item in found if self.has_item(item)]

    def recorded(self, item: str) -> Mapping[str, Any]:
        """Return what the manifest recorded of a slice when it was last processed; empty if it never was."""
        found = [
            each.content
            for each in self.store.records(item)
            if each.state is State.PROCESSED and each.application.key == self.application.key
        ]
        return found[-1] if found else {}

    def has_item(self, item: Item) -> bool:
        """Return whether an item is one of the bronze folder, and not of another entity's pattern in it."""
        if not item.item_id.startswith(self.prefix):
            return False
        inside = item.item_id.removeprefix(self.prefix)
        is_all = self.folder.is_shared or not self.folder.steps
        return is_all or ("/" not in inside and self.folder.has_entry(slice_name(item)))

    @cached_property
    def log(self) -> tuple[Commit, ...]:
        """The commits that the table's log still has, oldest first."""
        is_there = observe_table(self.lake, self.silver).exists
        return read_commits(self.lake, self.silver) if is_there else ()

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """The commits that the table's last version builds on, oldest first."""
        return tuple(effective_commits(self.log, self.app))[::-1]

    @cached_property
    def logged(self) -> tuple[HeldSlices, ...]:
        """All commits of the log with their slices, oldest first, also those that were reverted."""
        every = [(commit, slices_in(commit, self.app)) for commit in self.log]
        moved = continued_in(
            self.store, {each.item_id for _, slices in every for each in slices}, self.bronze
        )

        def now(applied: AppliedSlice) -> AppliedSlice:
            to = moved.get(applied.item_id)
            return (
                applied
                if to is None
                else replace(applied, item_id=to, content={**applied.content, "item": to})
            )

        return tuple((commit, tuple(map(now, slices))) for commit, slices in every)

    @cached_property
    def held(self) -> tuple[HeldSlices, ...]:
        """The commits that the table's last version builds on, with their slices, oldest first."""
        versions = {commit.version for commit in self.commits}
        return tuple(each for each in self.logged if each[0].version in versions)

    @cached_property
    def slices(self) -> tuple[AppliedSlice, ...]:
        """The slices of these commits, as often as each was applied."""
        return tuple(each for _, slices in self.held for each in slices)

    @cached_property
    def unlogged(self) -> tuple[AppliedSlice, ...]:
        """The processed slices that the log does not show, as the manifest records them.

        They changed nothing, or their commits are older than what the log keeps. A slice that the log shows
        is among them if it was processed once more with another content, which changed nothing.
        """
        store, application = self.store, self.application
        last = {each.item_id: each for each in self.slices}
        found = []
        for item in without_continued(store, processed_items(store, application), self.bronze):
            number, known = item.tokens.get(application.key), last.get(item.item_id)
            if number is None or (known is not None and known.number == number):
                continue
            applied = recorded_slice(store, item, application)
            if applied is not None and (
                known is None or (applied.is_unwritten and is_changed(known.fingerprint, applied.fingerprint))
            ):
                found.append(applied)
        return tuple(sorted(found, key=lambda each: each.number))

    @cached_property
    def reverted(self) -> frozenset[str]:
        """The items of slices whose commits the log shows, and that the table lost by a RESTORE of others."""
        committed = frozenset(each.item_id for _, slices in self.logged for each in slices)
        return committed - {each.item_id for each in self.slices}

    @cached_property
    def order(self) -> tuple[AppliedSlice, ...]:
        """All processed slices, each once, in the order in which they were last applied.

        A RESTORE of another program may have reverted the commit that applied some of them last, as a rebuild
        does for all: they keep the order that they have there.
        """
        return tuple(each for each in self.history if isinstance(each, AppliedSlice))

    @cached_property
    def history(self) -> tuple[AppliedSlice | Commit, ...]:
        """The slices of `order`, and among them the commits of other writers that changed rows.

        Such a commit comes after the slices that the table held then, and before those that it has reverted.
        """
        once = each_once(sorted((*self.slices, *self.unlogged), key=lambda each: each.number))
        items = self.store.read([each.item_id for each in once])
        tokens = {name: item.tokens.get(self.application.key) for name, item in items.items()}
        places = {
            (each.item_id, each.number): (each.number, index)
            for _, slices in self.logged
            for index, each in enumerate(slices)
        }

        def place(applied: AppliedSlice) -> tuple[int, float]:
            own = (applied.item_id, applied.number)
            # One that was requeued since has no number in the manifest, and that of a rewind may not be
            # recorded yet.
            last = (applied.item_id, tokens.get(applied.item_id) or -1)
            return max(places.get(own, (own[1], 0)), places.get(last, (-1, 0)))

        placed: list[tuple[tuple[int, float], AppliedSlice | Commit]] = [(place(each), each) for each in once]
        foreign, number = {commit.version for commit in foreign_commits(self.commits)}, 0
        for commit, slices in self.held:
            number = max([number, *(each.number for each in slices)])
            if commit.version in foreign:
                placed.append(((number, inf), commit))
        return tuple(each for _, each in sorted(placed, key=itemgetter(0)))

    def discovered(self, slices: Iterable[Slice]) -> Iterator[DiscoveredSlice]:
        """Yield slices as the manifest records new ones: one that the table holds, as it was applied.

        If its files have changed since, it is one that has changed, and not a new one.
        """
        held: dict[str, AppliedSlice] = {}
        with suppress(LakewrightError):  # of a table that can't be read nothing is known, and no slice taken
            is_read = self.silver.location is not None and table_log(self.lake, self.silver) is not None
            held = {each.item_id: each for each in self.slices} if is_read and self.lacks_commits else {}
        for found in discovered(slices, self.application, self.entity.called):
            applied = held.get(found.item_id)
            was = {} if applied is None else applied.fingerprint
            yield replace(found, fingerprint=was) if is_changed(was, found.fingerprint) else found

    def in_bronze(self, slices: Iterable[Slice]) -> dict[str, Item]:
        """Return the items of slices by id; those that the manifest does not know are as if just recorded."""
        new = {each.item_id: new_item(each) for each in self.discovered(slices)}
        return {**new, **self.store.read(list(new))}

    def holds(self, item: str) -> bool:
        """Return whether the table holds the slice of an item, whatever the manifest says."""
        return any(each.item_id == item for each in self.slices)

    def may_hold(self, item: Item) -> bool:
        """Return whether the table holds a slice, or may, as the log does not reach back far enough."""
        is_cut = bool(self.log) and self.log[0].version > 0
        return self.holds(item.item_id) or (item.revision > 1 and is_cut)

    def skipped(self, slices: Sequence[AppliedSlice]) -> dict[str, Item]:
        """Return the items of slices that the application skips now, by their ids, in their order."""
        items = self.store.read([each.item_id for each in slices])
        return {name: item for name, item in items.items() if item.is_skipped_for(self.application)}


def processed_items(store: Store, application: Application, prefix: str = "") -> Iterator[Item]:
    """Return the items that an application has processed, below a prefix of their ids."""
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    return iter(store.select(query))


def first_processed(store: Store, application: Application, prefix: str = "") -> Item | None:
    """Return one of these items, or None if there is none."""
    return next(processed_items(store, application, prefix), None)


Place: TypeAlias = tuple[tuple[int, int, str], ...]
"""The place of a slice in the order of names."""


def place_of(item: Item) -> Place:
    """Return the place of an item's slice."""
    return natural_key(slice_name(item))


def _last_of_others(
    store: Store, application: Application, prefix: str, known: Container[str]
) -> Place | None:
    """Return the last place of processed slices that are not known, of which only the last is read."""
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    places = {natural_key(slice_of_id(each)): each for each in store.candidates(query) if each not in known}
    while places:
        last = max(places)
        item = store.read([places.pop(last)])
        if any(each.verdict(application) is Verdict.PROCESSED for each in item.values()):
            return last
    return None


def without_continued(store: Store, items: Iterable[Item], bronze: str) -> list[Item]:
    """Return items without those of other places whose slices have an item in the bronze folder."""
    found = list(items)
    continued = continued_in(store, (item.item_id for item in found), bronze)
    return [item for item in found if item.item_id not in continued]


def continued_in(store: Store, ids: Iterable[str], bronze: str) -> dict[str, str]:
    """Return those of some items of other places whose slices have an item in the bronze folder, and which.

    `manifest move` has copied their records there and keeps them; they say nothing about the folder.
    """
    here = f"{item_id(bronze)}/"
    present = {each: here + slice_key(each) for each in ids if not each.startswith(here)}
    known = store.read(list(present.values()))
    return {each: there for each, there in present.items() if there in known}


def new_item(found: DiscoveredSlice) -> Item:
    """Return the item of a slice as if it had just been recorded."""
    content = {"entity": found.entity, "slice": found.slice, "fingerprint": dict(found.fingerprint)}
    draft = Draft(
        record_id="",
        item_id=found.item_id,
        state=State.NEW,
        application=found.application,
        author=Author.named("lakewright"),
        payload={"schema": "lakewright/new/1", "data": content},
    )
    return Item(found.item_id).after(draft.recorded(sequence=1, now=datetime.min.replace(tzinfo=UTC)))


def recorded_slice(store: Store, item: Item, application: Application) -> AppliedSlice | None:
    """Return a slice that an application has processed as its record says, or None if it has not.

    The content has the form in which commits say it. Items do not keep it, so that the record is read.
    """
    mark = item.processed_by(application)
    if mark is None:
        return None
    (record,) = (each for each in store.records(item.item_id) if each.record_id == mark.record_id)
    names = ("fingerprint", "strategy", "watermarks", "metrics", "delta_version")
    content = {name: record.content[name] for name in names if name in record.content}
    if (at := record.content.get("processing_time")) is not None:
        content["processingTime"] = at
    content |= {"item": item.item_id, "revision": item.revision}
    return AppliedSlice(item.item_id, item.tokens.get(application.key, 0), content)


def slices_in(commit: Commit, app: str) -> tuple[AppliedSlice, ...]:
    """Return the slices that a commit of an application holds, in the order in which they were applied."""
    items = commit.items if commit.content.get("app") == app else ()
    return tuple(AppliedSlice(each["item"], int(each["number"]), each) for each in items)


def each_once(slices: Iterable[AppliedSlice]) -> tuple[AppliedSlice, ...]:
    """Return each slice once, in the place of its last processing."""
    listed = list(slices)
    last = {each.item_id: each for each in listed}
    return tuple(each for each in listed if last[each.item_id] is each)


def effective_commits(log: Sequence[Commit], app: str) -> Iterator[Commit]:
    """Yield the commits that the table's last version builds on, newest first.

    RESTORE skips some, and so does a commit that puts the table back by replacing its rows.
    """
    by_version = {commit.version: commit for commit in log}
    commit = log[-1] if log else None
    while commit is not None and not _starts_over(commit, app):
        yield commit
        is_restored = commit.operation == "RESTORE" and "rewind" not in commit.content
        before = restored_version(commit, log) if is_restored else version_before(commit)
        commit = by_version.get(before) if before is not None and before < commit.version else None


def version_before(commit: Commit) -> int | None:
    """Return the version that a commit builds on; None if it made the table's first rows."""
    rewind = commit.content.get("rewind")
    if rewind is not None:
        base = rewind.get("base")
        return None if base is None else int(base)
    return commit.version - 1 if commit.version else None


def _starts_over(commit: Commit, app: str) -> bool:
    """Return whether a commit of another writer, or of TRUNCATE, removed all rows before it."""
    if commit.content.get("app") in (app, f"{app}/repair", f"{app}/undo", past_app(app)):
        return False
    return replaces_all(commit)


def since_empty(log: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits after the last one that emptied a table, or that built it again from its slices."""
    start = -1
    for commit in log:
        if empties(commit) or _builds_again(commit):
            start = commit.version
    return tuple(commit for commit in log if commit.version > start)


def foreign_commits(log: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits of other writers that changed rows, since Lakewright's first commit.

    Those before a rebuild from all slices are left out: nothing of them is in the table.
    """
    own = [commit for commit in log if "app" in commit.content]
    start = max([*own[:1], *filter(_builds_again, log)], key=lambda commit: commit.version, default=None)
    later = (commit for commit in log if start is not None and commit.version > start.version)
    return tuple(commit for commit in later if "app" not in commit.content and has_changed_rows(commit))


def _builds_again(commit: Commit) -> bool:
    """Return whether a commit built the table again from all its slices."""
    rewind = commit.content.get("rewind")
    return rewind is not None and rewind.get("base") is None


def foreign_since(commits: Sequence[Commit], app: str) -> tuple[Commit, ...]:
    """Return the commits that changed rows and are not of slices, rewinds or past versions, oldest first."""
    own = (app, f"{app}/undo", past_app(app))
    found = [c for c in commits if has_changed_rows(c) and c.content.get("app") not in own]
    return tuple(sorted(found, key=lambda commit: commit.version))
