"""Rewinds that a table's log tells and the manifest does not: it was put back to an older copy.

The next run records them, as it records slices that the manifest lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from lakewright.lake.commit import Commit, commits_since, read_commits
from lakewright.lake.observation import last_commit_number, table_log
from lakewright.manifest.commit_counter import raise_counter
from lakewright.manifest.rewind import RewoundSlice, rewound_slices
from lakewright.slices.applied import AppliedSlice, effective_commits, slices_in
from lakewright.slices.discover import slice_of_id
from lakewright.slices.recover_from_log import counter_of, lacks_commits, unwritten_mark
from lakewright.slices.rewind.settle import record_landed
from lakewright.spec.words import counted, first_of

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address

__all__ = [
    "UnrecordedRewind",
    "as_if_rewound",
    "count_commits",
    "record_rewinds",
    "unrecorded_rewinds",
]

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class UnrecordedRewind:
    """A rewind on which a table builds and that the manifest lacks.

    Attributes:
        slices: The slices that the manifest still has as they were before it. One that was processed again
            after it has the number and content of its last commit.
    """

    commit: Commit
    slices: tuple[RewoundSlice, ...]

    @property
    def words(self) -> str:
        """What it has made of its slices."""
        return first_of(list(self._words()), _MOST_NAMED)

    def _words(self) -> Iterator[str]:
        kinds = {
            "skipped": [each for each in self.slices if each.is_skipped],
            "ready again": [each for each in self.slices if not each.is_skipped and each.token is None],
            "in the table": [each for each in self.slices if each.token is not None],
        }
        for what, found in kinds.items():
            if len(found) == 1:
                yield f"{slice_of_id(found[0].item_id)} is {what}"
            elif found:
                yield f"{counted(len(found), 'slice')} are {what}"


def unrecorded_rewinds(
    lake: Lake, ledger: Ledger, silver: Address, application: Application
) -> tuple[UnrecordedRewind, ...]:
    """Return the rewinds on which a table builds and that the manifest lacks, oldest first.

    A rewind that is recorded has begun new revisions of its slices. Usually one commit is read.

    Args:
        lake: The lake.
        ledger: The manifest.
        silver: The table; only one whose log can be read without Spark is looked at.
        application: The application that processes its slices.
    """
    app = str(application)
    if table_log(lake, silver) is None or ledger.rewind_of(counter_of(silver)) is not None:
        return ()
    newest = commits_since(lake, silver, lambda each: each.content.get("app") in (app, f"{app}/undo"))
    if newest is None:
        return ()
    # What was recorded after a rewind was not put back to before it.
    is_behind = lacks_commits(lake, ledger, silver, application)
    if not is_behind and not _lacking(ledger, newest.start, application):
        return ()
    log = read_commits(lake, silver)
    # A slice is in the table by its last commit; what a later rewind took back has none.
    last: dict[str, tuple[AppliedSlice, Commit]] = {}
    for commit in effective_commits(log, app):
        for applied in reversed(slices_in(commit, app)):
            last.setdefault(applied.item_id, (applied, commit))
    found: list[UnrecordedRewind] = []
    for commit in log:
        if lacking := _lacking(ledger, commit, application):
            slices = (_as_applied(each, commit, *last.get(each.item_id, (None, None))) for each in lacking)
            found.append(UnrecordedRewind(commit, tuple(slices)))
    return tuple(found)


def _lacking(ledger: Ledger, commit: Commit, application: Application) -> tuple[RewoundSlice, ...]:
    """Return the slices of a rewind that were processed before it, and have no new revision since.

    What was recovered from the log counts as processed later than the rewind.
    """
    rewind = commit.content.get("rewind")
    slices = () if rewind is None else rewound_slices(rewind["slices"])
    items = ledger.store.read([each.item_id for each in slices]) if slices else {}

    def is_lacking(rewound: RewoundSlice) -> bool:
        item = items.get(rewound.item_id)
        if item is None or item.revision > rewound.revision or item.processing is not None:
            return False
        marks = (mark for mark in item.processed if mark.application.covers(application))
        return any(commit.at is not None and mark.since < commit.at for mark in marks)

    return tuple(filter(is_lacking, slices))


def _as_applied(
    rewound: RewoundSlice, rewind: Commit, applied: AppliedSlice | None, commit: Commit | None
) -> RewoundSlice:
    """Return a slice of a rewind as the table has it now: it may have been processed again since."""
    if applied is None or commit is None or rewound.token is not None or commit.version < rewind.version:
        return rewound
    told = applied.content
    metrics = {**told.get("metrics", {}), "deltaVersion": commit.version}
    content = {
        "slice": slice_of_id(applied.item_id),
        "strategy": told.get("strategy"),
        "processing_time": told.get("processingTime"),
        "fingerprint": told.get("fingerprint"),
        "watermarks": told.get("watermarks"),
        "metrics": metrics,
        "delta_version": commit.version,
    }
    note = {**rewound.note, "fingerprint": applied.fingerprint}
    return replace(rewound, note=note, is_skipped=False, token=applied.number, content=content)


def as_if_rewound(
    ledger: Ledger, rewinds: Sequence[UnrecordedRewind], application: Application
) -> dict[str, Item]:
    """Return the items of slices as they are once rewinds are recorded, by id."""
    found: dict[str, Item] = {}
    for rewind in rewinds:
        items: Mapping[str, Item] = {**ledger.store.read([each.item_id for each in rewind.slices]), **found}
        found |= {
            each.item_id: _rewound(items[each.item_id], each, application)
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
    skipped = (*item.skipped, unwritten_mark(item, application)) if rewound.is_skipped else item.skipped
    return replace(item, processed=processed, skipped=skipped, tokens=tokens, revision=item.revision + 1)


def record_rewinds(context: ProcessingContext, entity: Entity) -> bool:
    """Record the rewinds that the log of an entity's table tells and the manifest lacks; return whether any.

    The counter of commits is left as it is: slices that the manifest lacks as well are found by it.
    """
    silver, ledger = entity.places(context.lake.settings).silver, context.ledger
    rewinds = unrecorded_rewinds(context.lake, ledger, silver, context.application)
    for rewind in rewinds:
        items = ledger.store.read([each.item_id for each in rewind.slices])
        slices = [replace(each, revision=items[each.item_id].revision) for each in rewind.slices]
        told = {**rewind.commit.content["rewind"], "slices": list(map(asdict, slices))}
        commit = replace(rewind.commit, content={**rewind.commit.content, "rewind": told})
        if record_landed(context, entity, None, commit):
            context.warn(
                f"{entity.name}: the manifest lacked version {commit.version} of the table, and it is "
                f"recorded now: {rewind.words} ({told['reason']})"
            )
    return bool(rewinds)


def count_commits(context: ProcessingContext, entity: Entity) -> None:
    """Raise the manifest's counter of commits to the last one of an entity's table."""
    silver = entity.places(context.lake.settings).silver
    last = last_commit_number(context.lake, silver, str(context.application))
    if last is not None:
        raise_counter(context.ledger.store, counter_of(silver), last)
