"""Recovery of the manifest from tables' logs: slices and rewinds that a table holds and the manifest lacks.

The manifest was lost, or put back to an older copy. The next run records what the log shows.

Source: `processing-manifest.md`, "State" (Processed); each commit carries its item, fingerprint and metrics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import (
    Commit,
    commits_since,
    replaces_all,
    restored_version,
    slice_key,
)
from lakewright.lake.observation import table_log
from lakewright.manifest.claim import raise_counter
from lakewright.manifest.item import Item, Mark
from lakewright.manifest.rewind import RewoundSlice, rewound_slices
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import AppliedSlice, counter_of, slices_in
from lakewright.slices.discovery import slice_name, slice_of_id
from lakewright.slices.lost_table import moved_lake_error
from lakewright.slices.result import landed_content
from lakewright.slices.rewind.plan import greatest_marks
from lakewright.slices.rewind.settlement import record_landed
from lakewright.spec.words import counted, first_of
from lakewright.strategies.past_load import past_app

if TYPE_CHECKING:
    from lakewright.manifest.record import Application
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity, Strategy


_MOST_NAMED = 3

_MOST_COMMITS = 20
"""Number of a table's last commits among which Lakewright's last one is looked for."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a table's log shows about slices that the manifest never began.

    Attributes:
        held: The items of slices that the table holds as they are, with their commits, oldest first.
        undone: The items of slices that were undone and are to be skipped, each with the reason.
    """

    held: tuple[tuple[Item, Commit], ...]
    undone: tuple[tuple[Item, str], ...]


def find_recovery(chain: SliceChain, items: Iterable[Item]) -> Recovery | None:
    """Return what a run would record from a table's log before it processes slices; None for nothing.

    The log is read only while the manifest's counter of commits is behind the table's.
    """
    untouched = [item for item in items if _is_untouched(item, chain.application)]
    if not untouched or not chain.lacks_commits:
        return None
    if moved_lake_error(chain, lambda: set(map(slice_name, untouched))) is not None:
        return None  # the manifest is not lost: `manifest move` continues its records
    held = tuple(unrecorded_commits(chain, untouched))
    known = {item.item_id for item, _ in held}
    undone = tuple(_undone(chain, (item for item in untouched if item.item_id not in known)))
    return Recovery(held, undone)


def unrecorded_items(chain: SliceChain, items: Iterable[Item]) -> dict[str, Item]:
    """Return the items that the next run first records from the table's log, as they are then, by id.

    Nothing is recorded. Slices that the table holds count as processed, undone ones as skipped.

    Args:
        chain: The slices of the entity.
        items: The items of those in bronze, which the manifest may not list at all, and of open ones.
    """
    found, by = _as_if_rewound(chain), chain.application
    recovery = find_recovery(chain, ({each.item_id: each for each in items} | found).values())
    if recovery is None:
        return found
    for item, _ in recovery.held:
        found[item.item_id] = replace(item, processed=(*item.processed, _unwritten_mark(item, by)))
    for item, _ in recovery.undone:
        found[item.item_id] = replace(item, skipped=(*item.skipped, _unwritten_mark(item, by)))
    return found


def _unwritten_mark(item: Item, application: Application) -> Mark:
    """Return the mark of a record that is still to be written."""
    since = item.since or datetime.fromtimestamp(0, UTC)
    return Mark("", application, None, since, item.sequence)


def record_log(context: ProcessingContext, entity: Entity, items: Mapping[str, Item]) -> dict[str, Item]:
    """Record what the log of an entity's table shows and the manifest lacks; return the items by id.

    The manifest's counter of commits is raised to the table's, so that the log is read once.

    Args:
        context: The context of the processing.
        entity: The entity.
        items: The items of its slices in bronze, by id.
    """
    chain, ledger = context.chain(entity), context.ledger
    recorded = _record_rewinds(context, entity, chain)
    recovery = find_recovery(chain, {**items, **recorded}.values())
    if recovery is not None:
        recorded |= _record_slices(context, entity, recovery, items.values())
    if (recorded or recovery is not None) and (last := chain.last_number) is not None:
        raise_counter(ledger.store, counter_of(chain.silver), last)
    return recorded


def _record_rewinds(context: ProcessingContext, entity: Entity, chain: SliceChain) -> dict[str, Item]:
    recorded: dict[str, Item] = {}
    for rewind in unrecorded_rewinds(chain):
        slices = list(map(asdict, rewind.slices))
        content = {**rewind.commit.content["rewind"], "slices": slices, "watermarks": rewind.watermarks}
        commit = replace(rewind.commit, content={**rewind.commit.content, "rewind": content})
        if items := record_landed(context, entity, None, commit):
            recorded |= {each.item_id: each for each in items}
            names = first_of([slice_of_id(each.item_id) for each in rewind.slices], _MOST_NAMED)
            context.warn(
                f"{entity.called}: the manifest lacked version {commit.version} of the table, and it is "
                f"recorded now: {content['reason']}: {names}"
            )
    return recorded


def _record_slices(
    context: ProcessingContext, entity: Entity, recovery: Recovery, items: Collection[Item]
) -> dict[str, Item]:
    ledger, by = context.ledger, context.application
    recovered: dict[str, Item] = {}
    for item, commit in recovery.held:
        _, content = landed_content(slice_name(item), commit.version, commit.content, entity.strategy)
        done = ledger.recover_processed(
            item,
            by,
            token=commit.content["number"],
            content=content,
            run_id=context.holder.run_id,
        )
        recovered[item.item_id] = done
    # Otherwise the next run would apply them again.
    undone = {
        item.item_id: ledger.skip(item.item_id, reason, application=by) for item, reason in recovery.undone
    }
    # No warning for a table that only moved: its commits are numbered from 1 again, and nothing is lost.
    if recovered or not any(by.key in item.tokens for item in items):
        untouched = sum(_is_untouched(item, by) for item in items)
        context.warn(
            f"{entity.name}: the manifest lacks commits of the table; according to its log the table holds "
            f"{len(recovered)} of {untouched} slices as they are: recorded as processed"
        )
    if undone:
        context.warn(
            f"{entity.name}: according to the table's log {counted(len(undone), 'slice')} "
            f"{'was' if len(undone) == 1 else 'were'} undone: recorded as skipped"
        )
    return {**recovered, **undone}


def _undone(chain: SliceChain, items: Iterable[Item]) -> Iterator[tuple[Item, str]]:
    """Yield the items of slices that were undone, as the table's log shows, with the reason for a skip."""
    by_key = {slice_key(item.item_id): item for item in items}
    own = (chain.app, f"{chain.app}/undo")
    # The last rewind that names a slice decides: one before it may not be among what the table builds on.
    for commit in reversed(chain.log):
        rewind = commit.content.get("rewind") or {}
        for slice_ in rewind.get("slices", ()) if commit.content.get("app") in own else ():
            item = by_key.pop(slice_key(slice_["item_id"]), None)
            if item is not None and slice_["is_skipped"]:
                yield item, f"according to the table's log: {rewind['reason']}"


def unrecorded_commits(chain: SliceChain, items: Iterable[Item]) -> Iterator[tuple[Item, Commit]]:
    """Yield untouched items whose slices are in the table as they are now, with their commits, oldest first.

    Slices that have changed since their commit are left out, and so are those whose rows were removed with
    all others.
    """
    last: dict[str, Commit] = {}
    for commit in reversed(chain.commits):
        # The last of the items of a fold is the newest.
        for content in reversed(commit.items if commit.content.get("app") == chain.app else ()):
            last.setdefault(slice_key(content["item"]), replace(commit, content=content))
    by_key = {slice_key(item.item_id): item for item in items}
    for key, commit in reversed(last.items()):
        item = by_key.get(key)
        if item is not None and _is_untouched(item, chain.application) and _is_commit_of(commit, item):
            yield item, commit


def _is_untouched(item: Item, application: Application) -> bool:
    """Return whether an item is ready for an application that never locked it."""
    is_ready = item.verdict(application) is Verdict.READY and item.fingerprint is not None
    return is_ready and application.key not in item.tokens


def _is_commit_of(commit: Commit, item: Item) -> bool:
    """Return whether a commit is of the slice's present content, not of its content before a `requeue`."""
    if commit.content.get("fingerprint") != item.fingerprint:
        return False
    if item.revision == 1 or item.new is None:
        return True
    is_later = commit.at is not None and commit.at.astimezone(UTC) >= item.new.since
    return is_later and commit.content.get("revision") == item.revision


@dataclass(frozen=True, slots=True)
class UnrecordedRewind:
    """A rewind on which a table builds and that the manifest lacks.

    Attributes:
        slices: The slices that the manifest still has as they were before it. One that was processed again
            after it has the number and content of its last commit.
        watermarks: The watermarks that change, of the last rewind: they follow from what the table holds.
    """

    commit: Commit
    slices: tuple[RewoundSlice, ...]
    watermarks: Mapping[str, Any] = field(default_factory=dict)


def unrecorded_rewinds(chain: SliceChain) -> tuple[UnrecordedRewind, ...]:
    """Return the rewinds that stand in a table's log and that the manifest lacks, oldest first.

    A rewind that is recorded has begun new revisions of its slices. One that a RESTORE of another program
    has reverted does not stand. Usually one commit is read. Only a table in a folder whose log can be read
    without Spark is looked at.
    """
    app, silver = chain.app, chain.silver
    if silver.location is None or table_log(chain.lake, silver) is None:
        return ()
    newest = commits_since(chain.lake, silver, lambda each: _is_own(each, app), most=_MOST_COMMITS)
    if newest is None or chain.rewind is not None:
        return ()
    # What was recorded after a rewind was not put back to before it.
    if not chain.lacks_commits and not _lacking(chain, newest.start):
        return ()
    # A slice is in the table by its last commit; what a later rewind took back has none.
    last: dict[str, tuple[AppliedSlice, Commit]] = {}
    for commit in reversed(chain.commits):
        for applied in reversed(slices_in(commit, app)):
            last.setdefault(applied.item_id, (applied, commit))
    found: list[UnrecordedRewind] = []
    seen: dict[str, int] = {}
    for commit in _standing(chain.log, app):
        slices: list[RewoundSlice] = []
        for each, revision in _lacking(chain, commit):
            # Each rewind begins a revision, as it is recorded.
            number = seen[each.item_id] = seen.get(each.item_id, revision - 1) + 1
            rewound = _as_applied(each, commit, chain.entity.strategy, *last.get(each.item_id, ()))
            slices.append(replace(rewound, revision=number))
        if slices:
            found.append(UnrecordedRewind(commit, tuple(slices)))
    if found:
        columns = {name for each in found for name in each.commit.content["rewind"]["watermarks"]}
        greatest = greatest_marks(applied for applied, _ in last.values())
        found[-1] = replace(found[-1], watermarks={name: greatest.get(name) for name in columns})
    return tuple(found)


def _is_own(commit: Commit, app: str) -> bool:
    """Return whether a commit is of a slice, a rewind, a repair or past versions of an entity."""
    return str(commit.content.get("app") or "").partition("/repair")[0] in (app, f"{app}/undo", past_app(app))


def _standing(log: Sequence[Commit], app: str) -> list[Commit]:
    """Return the rewinds of an entity that no RESTORE of another program has reverted, oldest first.

    Unlike the commits on which the table builds, these have also what a later rewind went behind.
    """
    by_version = {commit.version: commit for commit in log}
    found: list[Commit] = []
    commit = log[-1] if log else None
    while commit is not None:
        is_own, before = _is_own(commit, app), commit.version - 1
        if is_own and "rewind" in commit.content:
            found.insert(0, commit)
        elif not is_own and commit.operation == "RESTORE":
            restored = restored_version(commit, log)
            before = before if restored is None or restored >= commit.version else restored
        elif not is_own and replaces_all(commit):
            break
        commit = by_version.get(before)
    return found


def _lacking(chain: SliceChain, commit: Commit) -> tuple[tuple[RewoundSlice, int], ...]:
    """Return the slices of a rewind that were processed before it, and have no new revision since.

    Each has its present revision. What was recovered from the log counts as processed later than the rewind.
    """
    rewind = commit.content.get("rewind")
    slices = () if rewind is None else rewound_slices(rewind["slices"])
    items = chain.store.read([each.item_id for each in slices]) if slices else {}

    def is_lacking(rewound: RewoundSlice) -> bool:
        item = items.get(rewound.item_id)
        if item is None or item.revision > rewound.revision or item.processing is not None:
            return False
        mark = item.processed_by(chain.application)
        return mark is not None and commit.at is not None and mark.since < commit.at

    return tuple((each, items[each.item_id].revision) for each in slices if is_lacking(each))


def _as_applied(
    rewound: RewoundSlice,
    rewind: Commit,
    strategy: Strategy,
    applied: AppliedSlice | None = None,
    commit: Commit | None = None,
) -> RewoundSlice:
    """Return a slice of a rewind as the table has it now: it may have been processed again since."""
    if applied is None or commit is None or rewound.token is not None or commit.version < rewind.version:
        return rewound
    _, content = landed_content(applied.name, commit.version, applied.content, strategy)
    note = {**rewound.note, "fingerprint": applied.fingerprint}
    return replace(rewound, note=note, is_skipped=False, token=applied.number, content=content)


def _as_if_rewound(chain: SliceChain) -> dict[str, Item]:
    """Return the items of slices as they are once the rewinds that the manifest lacks are recorded, by id."""
    found: dict[str, Item] = {}
    for rewind in unrecorded_rewinds(chain):
        items: Mapping[str, Item] = {**chain.store.read([each.item_id for each in rewind.slices]), **found}
        found |= {
            each.item_id: _rewound(items[each.item_id], each, chain.application)
            for each in rewind.slices
            if each.item_id in items
        }
    return found


def _rewound(item: Item, rewound: RewoundSlice, application: Application) -> Item:
    """Return an item as it is once a rewind of its slice is recorded."""
    if rewound.token is not None:
        return item
    processed = tuple(mark for mark in item.processed if not mark.application.covers(application))
    tokens = {key: number for key, number in item.tokens.items() if key != application.key}
    skipped = (*item.skipped, _unwritten_mark(item, application)) if rewound.is_skipped else item.skipped
    return replace(item, processed=processed, skipped=skipped, tokens=tokens, revision=item.revision + 1)
