"""Reconciliation of the manifest with a table's log: slices on which they disagree, and commits of others.

Source: `processing-manifest.md`, "State" (Processed); commits carry the token of their item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Commit
from lakewright.lake.commit_effects import restored_version
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import command
from lakewright.slices.discover import slice_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store

__all__ = [
    "Mismatch",
    "has_no_commit",
    "mismatches",
]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A slice on which manifest and table disagree.

    Attributes:
        kind: `commit_lost`, `commit_unrecorded` or `undo_unrecorded`.
        words: The disagreement, as a sentence.
        remedy: The command that repairs it.
    """

    kind: str
    slice: str
    item_id: str
    words: str
    remedy: str

    def as_json(self) -> dict[str, Any]:
        """Return the mismatch as `doctor -o json` prints it."""
        return {
            "kind": self.kind,
            "slice": self.slice,
            "item": self.item_id,
            "words": self.words,
            "remedy": self.remedy,
        }


def has_no_commit(store: Store, item: Item, application: Application) -> bool:
    """Return whether a processed slice changed nothing, so that the table never got a commit of it.

    Its PROCESSED record says so. The record is read from the store, because items do not keep it.
    """
    marks = {mark.record_id for mark in item.processed if mark.application.covers(application)}
    own = (record for record in store.records(item.item_id) if record.record_id in marks)
    return any("delta_version" in each.content and each.content["delta_version"] is None for each in own)


def mismatches(
    items: Iterable[Item],
    application: Application,
    log: Sequence[Commit],
    last: int | None,
    *,
    changed_nothing: Callable[[Item], bool],
    rebuild: str | None = None,
) -> Iterator[Mismatch]:
    """Yield slices that are recorded as processed but not in the table, and the other way round.

    Args:
        items: Items of the entity.
        application: The application that processes them.
        log: The commits that the table's log still holds.
        last: Number of the application's last commit to the table.
        changed_nothing: Returns whether a processed item never had a commit.
        rebuild: The command that makes the table again, which slices of a reverted rewind need; if None, they
            are told as others.
    """
    undone = {number: commit for commit, number in _undone(log, str(application))}
    landed = {
        commit.content.get("number"): commit
        for commit in log
        if commit.content.get("app") == str(application)
    }
    for item in items:
        number = item.tokens.get(application.key)
        if number is None:
            continue
        name = slice_name(item)
        is_processed = item.verdict(application) is Verdict.PROCESSED
        if is_processed and number in undone and "rewind" in undone[number].content:
            words = f"{name} is recorded as processed, but version {undone[number].version} undid it"
            remedy = "The manifest is an older copy: the next run records the undo."
            yield Mismatch("undo_unrecorded", name, item.item_id, words, remedy)
        elif is_processed and number in undone:
            words = (
                f"{name} is recorded as processed, but version {undone[number].version} reverted its commit"
            )
            is_of_rewind = number in landed and "rewind" in landed[number].content
            remedy = rebuild if rebuild is not None and is_of_rewind else command("requeue", item.item_id)
            yield Mismatch("commit_lost", name, item.item_id, words, remedy)
        elif is_processed and number > (last or 0) and not changed_nothing(item):
            words = f"{name} is recorded as processed, but the table has no commit of it"
            yield Mismatch("commit_lost", name, item.item_id, words, command("requeue", item.item_id))
        elif (
            item.verdict(application) in (Verdict.READY, Verdict.LOCKED)
            and number in landed
            and landed[number].holds(item.item_id)
        ):
            words = f"{name} is in the table, but not recorded as processed"
            remedy = "The next run records it."
            yield Mismatch("commit_unrecorded", name, item.item_id, words, remedy)


def _undone(log: Sequence[Commit], app: str) -> Iterator[tuple[Commit, int]]:
    """Yield commits of RESTORE, each with the number of a commit of the application that it reverted."""
    for restore in log:
        if restore.operation != "RESTORE":
            continue
        target = restored_version(restore, log)
        for commit in log:
            is_between = target is not None and target < commit.version < restore.version
            if is_between and commit.content.get("app") == app:
                yield restore, int(commit.content["number"])
