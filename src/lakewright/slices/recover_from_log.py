"""Recovery of the manifest from tables' logs: slices that a table holds and the manifest does not know of.

Source: `processing-manifest.md`, "State" (Processed); each commit carries its item, fingerprint and metrics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Commit, LandedCommit, slice_key
from lakewright.manifest.commit_counter import raise_counter
from lakewright.manifest.item import Item, Mark, Verdict
from lakewright.slices.chain import counter_of
from lakewright.slices.discover import slice_name
from lakewright.slices.moved_lake import moved_lake_error
from lakewright.spec.words import counted
from lakewright.strategies.summary import Summary

if TYPE_CHECKING:
    from lakewright.manifest.record import Application
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity, Strategy

__all__ = [
    "as_if_recovered",
    "find_recovery",
    "metrics_content",
    "recover_slices",
    "summary_from_commit",
    "unrecorded_commits",
    "unwritten_mark",
]


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a table's log tells of slices that the manifest never began.

    Attributes:
        last: The number of the table's last commit.
        held: The items of slices that the table holds as they are, with their commits, oldest first.
        undone: The items of slices that were undone and are to be skipped, each with the reason.
    """

    last: int
    held: tuple[tuple[Item, Commit], ...]
    undone: tuple[tuple[Item, str], ...]


def find_recovery(chain: SliceChain, items: Iterable[Item]) -> Recovery | None:
    """Return what a run would record from a table's log before it processes slices; None for nothing.

    The log is read only while the manifest's counter of commits is behind the table's.
    """
    untouched = [item for item in items if _is_untouched(item, chain.application)]
    last = chain.last_number if untouched else None
    if last is None or last <= chain.last_given_number:
        return None
    place = untouched[0].item_id.rpartition("/")[0]
    names = set(map(slice_name, untouched))
    if moved_lake_error(chain.store, chain.application, place, names) is not None:
        return None  # the manifest is not lost: `manifest move` continues its records
    held = tuple(unrecorded_commits(chain, untouched))
    known = {item.item_id for item, _ in held}
    undone = tuple(_undone(chain, (item for item in untouched if item.item_id not in known)))
    return Recovery(last, held, undone)


def as_if_recovered(chain: SliceChain, items: Iterable[Item]) -> dict[str, Item]:
    """Return the items that the next run first records from the table's log, as they are then, by id.

    Nothing is recorded. Slices that the table holds count as processed, undone ones as skipped.
    """
    found, by = find_recovery(chain, items), chain.application
    if found is None:
        return {}
    held = (replace(item, processed=(*item.processed, unwritten_mark(item, by))) for item, _ in found.held)
    undone = (replace(item, skipped=(*item.skipped, unwritten_mark(item, by))) for item, _ in found.undone)
    return {item.item_id: item for item in (*held, *undone)}


def unwritten_mark(item: Item, application: Application) -> Mark:
    """Return the mark of a record that is still to be written."""
    since = item.since or datetime.fromtimestamp(0, UTC)
    return Mark("", application, None, since, item.sequence)


def recover_slices(context: ProcessingContext, entity: Entity, items: Collection[Item]) -> dict[str, Item]:
    """Record slices as processed that the table holds and the manifest never began; return their items by id.

    The manifest's counter of commits is raised to the table's, so that the log is read once.
    """
    ledger, chain = context.ledger, context.chain(entity)
    found = find_recovery(chain, items)
    if found is None:
        return {}
    recovered: dict[str, Item] = {}
    for item, commit in found.held:
        summary, content = summary_from_commit(LandedCommit(commit.version, commit.content), entity.strategy)
        done = ledger.recover_processed(
            item,
            context.application,
            token=commit.content["number"],
            content={"slice": slice_name(item), **content, **metrics_content(summary)},
            run_id=context.holder.run_id,
        )
        recovered[item.item_id] = done
    # Otherwise the next run would apply them again.
    undone = {
        item.item_id: ledger.skip(item.item_id, reason, application=context.application)
        for item, reason in found.undone
    }
    raise_counter(ledger.store, counter_of(chain.silver), found.last)
    # No warning for a table that only moved: its commits are numbered from 1 again, and nothing is lost.
    if recovered or not any(context.application.key in item.tokens for item in items):
        untouched = sum(_is_untouched(item, context.application) for item in items)
        context.warn(
            f"{entity.name}: the manifest does not know the table's commits up to {found.last}; according to "
            f"its log the table holds {len(recovered)} of {untouched} slices as they are: recorded as "
            "processed"
        )
    if undone:
        context.warn(
            f"{entity.name}: according to the table's log {counted(len(undone), 'slice')} "
            f"{'was' if len(undone) == 1 else 'were'} undone: recorded as skipped"
        )
    return {**recovered, **undone}


def _undone(chain: SliceChain, items: Iterable[Item]) -> Iterator[tuple[Item, str]]:
    """Yield the items of slices that were undone, as the table's log tells, with the reason for a skip."""
    by_key = {slice_key(item.item_id): item for item in items}
    own = (chain.app, f"{chain.app}/undo")
    # The last rewind that names a slice decides: one before it may not be among what the table builds on.
    for commit in reversed(chain.log):
        rewind = commit.content.get("rewind") or {}
        for told in rewind.get("slices", ()) if commit.content.get("app") in own else ():
            item = by_key.pop(slice_key(told["item_id"]), None)
            if item is not None and told["is_skipped"]:
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


def summary_from_commit(fact: LandedCommit, strategy: Strategy) -> tuple[Summary, dict[str, Any]]:
    """Return the summary that a commit carries, and the content of a PROCESSED record except the metrics."""
    metrics = {**fact.content.get("metrics", {}), "deltaVersion": fact.version}
    metrics.setdefault("strategy", strategy.value)
    summary = Summary.from_json(metrics)
    names = {"processingTime": "processing_time"}
    kept = ("fingerprint", "watermarks", "drift", "strategy", "processingTime")
    told = {names.get(key, key): fact.content[key] for key in kept if key in fact.content}
    return summary, {**told, "adopted": True, "commit_run": fact.content.get("run")}


def metrics_content(summary: Summary) -> dict[str, Any]:
    """Return the summary as a PROCESSED record holds it."""
    content = {"metrics": summary.as_json(), "delta_version": summary.delta_version}
    return {**content, "quarantined": summary.quarantined} if summary.quarantined else content


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
