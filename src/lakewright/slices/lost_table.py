"""A silver table that is gone or older than the manifest, which counts slices as processed into it.

The next slice alone would make a new table without the rows of all slices before it, or come into one that
lacks those of some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.observation import last_commit_number, observe_table
from lakewright.manifest.item import Verdict
from lakewright.manifest.readiness import Group, Reading
from lakewright.manifest.record import Record
from lakewright.slices.discover import slice_name
from lakewright.slices.processed import first_processed
from lakewright.slices.recover_from_log import last_given_number
from lakewright.spec.words import counted
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakewright.lake.lake import Lake
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.item import Item
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address

__all__ = [
    "check_table_not_lost",
    "find_older_table",
    "lacked_items",
    "lost_table_error",
    "older_table_error",
]

_MOST_ITEMS = 100
"""Number of processed slices, newest first, among which those that an older table lacks are looked for."""


def lost_table_error(entity: Entity, processed: Item | None, place: object) -> TargetError | None:
    """Return the error of a table that does not exist although a slice is processed into it, or None.

    Args:
        entity: The entity, whose table does not exist.
        processed: A slice that counts as processed into it; None if there is none.
        place: The address of the table, as text for users.
    """
    if processed is None:
        return None
    return TargetError(
        f"entity {entity.called!r}: the manifest counts slices such as {slice_name(processed)} as processed "
        f"into {place}, but no table exists there",
        remedy="Bring the table back, or correct the place of silver if it was moved. "
        f"`{rebuild_command(entity)} --yes` makes it again from its slices.",
    )


def older_table_error(
    ledger: Ledger, entity: Entity, application: Application, silver: Address, last: int | None
) -> TargetError | None:
    """Return the error of a table that lacks commits which the manifest has recorded, or None.

    It is an older copy. A RESTORE does not count: it keeps the numbers of commits.

    Args:
        ledger: The manifest.
        entity: The entity.
        application: The application that processes its slices.
        silver: The address of the table, which exists.
        last: The number of the application's last commit in the table's log; None if there is none.
    """
    lacked = lacked_items(ledger, application, silver, last)
    if not lacked:
        return None
    has = "has" if len(lacked) == 1 else "have"
    # Without a commit of a slice, the rows are those of another program, which only the option drops.
    option = "" if last is not None else " --over-foreign"
    return TargetError(
        f"entity {entity.called!r}: {silver} is older than the manifest: {counted(len(lacked), 'slice')}, "
        f"such as {slice_name(lacked[0])}, {has} been processed by commits that its log does not have",
        remedy="Bring the newer table back if there is one. "
        f"`{rebuild_command(entity)}{option} --yes` makes it again from its slices.",
    )


def find_older_table(
    lake: Lake, ledger: Ledger, entity: Entity, application: Application, silver: Address
) -> TargetError | None:
    """Return the error of a table that is older than the manifest, or None; the table is looked at."""
    error = None
    for _ in range(2):  # another run may have committed, and then recorded, a slice since the first look
        last = last_commit_number(lake, silver, str(application))
        error = older_table_error(ledger, entity, application, silver, last)
        if error is None:
            break
    return error


def lacked_items(
    ledger: Ledger, application: Application, silver: Address, last: int | None
) -> tuple[Item, ...]:
    """Return processed items of which a table lacks the commits, the newest first, as an older copy does.

    Args:
        ledger: The manifest.
        application: The application that processes them.
        silver: The address of the table, which exists.
        last: The number of the application's last commit in the table's log; None if there is none.
    """
    if (last or 0) >= last_given_number(ledger, silver):
        return ()
    return tuple(_lacked_items(ledger.store, application, last or 0))


def _lacked_items(store: Store, application: Application, last: int) -> Iterator[Item]:
    """Yield processed items whose commits come after a number, the newest first.

    Those that have changed nothing are left out, as they never had a commit.
    """
    processed = {each for each in store.standings() if each.verdict(application) is Verdict.PROCESSED}
    newest = store.queue(Group(frozenset(processed)), Reading(is_newest_first=True, limit=_MOST_ITEMS))
    later = [item for item in newest if item.tokens.get(application.key, 0) > last]
    marks = {
        (item.item_id, mark.sequence): item
        for item in later
        for mark in item.processed
        if mark.application.covers(application)
    }
    for place, record in store.find_records(list(marks)).items():
        if isinstance(record, Record) and record.content.get("delta_version") is not None:
            yield marks[place]


def check_table_not_lost(context: ProcessingContext, entity: Entity) -> TableState:
    """Return the state of the silver table.

    Raises:
        TargetError: Slices count as processed, but the table does not exist, or lacks their commits.
    """
    silver = entity.places(context.lake.settings).silver
    state = observe_table(context.lake, silver)
    if state.exists:
        older = find_older_table(context.lake, context.ledger, entity, context.application, silver)
        if older is not None:
            raise older
        return state
    processed = first_processed(context.ledger.store, context.application)
    error = lost_table_error(entity, processed, silver)
    # Another run may have made the table and recorded its slice since the first look.
    if error is not None:
        state = observe_table(context.lake, silver)
        if not state.exists:
            raise error
    return state
