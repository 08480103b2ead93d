"""What the manifest says of an entity's slices beside what the table's log says of its commits.

Source: `processing-manifest.md`, "State" (Processed); commits carry their item's token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Commit
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import command
from lakewright.slices.pending import slice_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application

__all__ = ["Mismatch", "mismatches", "strangers", "version_restored"]

_OF_ROWS = frozenset(
    (
        *("WRITE", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "RESTORE", "CLONE", "STREAMING UPDATE"),
        *("REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT"),
    )
)
"""Operations that change what rows a table holds."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A slice of which manifest and table don't say the same.

    Attributes:
        kind: `commit_lost`, or `commit_unrecorded`.
        words: What is the matter.
        remedy: What to type.
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


def mismatches(
    items: Iterable[Item], application: Application, log: Sequence[Commit], last: int | None
) -> Iterator[Mismatch]:
    """Yield the slices that count as processed but aren't in the table, and those that only the table knows.

    Args:
        items: Of the entity.
        application: On whose behalf they are processed.
        log: Commits that the table's log still knows.
        last: Number of the last commit to the table that the application numbered.
    """
    undone = {number: commit for commit, number in _undone(log, str(application))}
    landed = {commit.content.get("number") for commit in log if commit.content.get("app") == str(application)}
    for item in items:
        number = item.tokens.get(application.key)
        if number is None:
            continue
        name = slice_name(item)
        is_processed = item.verdict(application) is Verdict.PROCESSED
        if is_processed and number in undone:
            words = f"{name} counts as processed, but version {undone[number].version} took its commit back"
            yield Mismatch("commit_lost", name, item.item_id, words, command("requeue", item.item_id))
        elif is_processed and number > (last or 0):
            words = f"{name} counts as processed, but the table has no commit of it"
            yield Mismatch("commit_lost", name, item.item_id, words, command("requeue", item.item_id))
        elif item.verdict(application) in (Verdict.READY, Verdict.LOCKED) and number in landed:
            words = f"{name} is in the table, but the manifest wasn't told"
            remedy = "The next run takes it over."
            yield Mismatch("commit_unrecorded", name, item.item_id, words, remedy)


def _undone(log: Sequence[Commit], app: str) -> Iterator[tuple[Commit, int]]:
    """Commits of RESTORE, each with the numbers of the application's commits that it took back."""
    for restore in log:
        if restore.operation != "RESTORE":
            continue
        target = version_restored(restore, log)
        for commit in log:
            is_between = target is not None and target < commit.version < restore.version
            if is_between and commit.content.get("app") == app:
                yield restore, int(commit.content["number"])


def version_restored(restore: Commit, log: Sequence[Commit]) -> int | None:
    """Return the version that a RESTORE went back to, by its number or its time."""
    given = restore.parameters.get("version")
    if given not in (None, ""):
        return int(str(given).strip('"'))
    text = str(restore.parameters.get("timestamp") or "")
    earlier = [c.version for c in log if c.at is not None and text and c.at.isoformat(" ") <= text]
    return max(earlier, default=None)


def strangers(log: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits that changed rows and that Lakewright didn't make, since its own first one."""
    own = [commit.version for commit in log if "app" in commit.content]
    later = (commit for commit in log if own and commit.version > own[0])
    return tuple(commit for commit in later if commit.operation in _OF_ROWS and "app" not in commit.content)
