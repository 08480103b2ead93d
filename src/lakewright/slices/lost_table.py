"""A lake that was moved or renamed, and a table that is gone, older than the manifest, or changed by others.

Items are named by their URI, which a move changes: all slices would be processed again, on top of their own
rows. Into a table that is gone or older, the next slice alone would come without the rows of slices before
it. Rows that other programs have changed are gone on with, unless a run refuses the table as a whole.

Source: `processing-manifest.md`, "State" (Processed); commits carry the token of their item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakeMoved, LakewrightError, TargetError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import (
    Commit,
    commit_text,
    commits_since,
    is_own,
    standing_changes,
)
from lakewright.lake.observation import observe_table
from lakewright.manifest.readiness import Group, Reading
from lakewright.manifest.record import Application, Record
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import is_of_lakewright
from lakewright.slices.chain import first_processed, processed_items
from lakewright.slices.discovery import item_id, slice_name
from lakewright.spec.words import counted, first_of
from lakewright.strategies.adoption import is_adoptable
from lakewright.strategies.compatibility import check_table_compatible
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity, Strategy
    from lakewright.spec.models.places import Address


_MOST_ITEMS = 100
"""Number of processed slices, newest first, among which those that an older table lacks are looked for."""


def moved_lake_error(chain: SliceChain, names: Callable[[], Set[str]]) -> LakeMoved | None:
    """Return the error of slices that were processed elsewhere, if none were processed here; None without.

    All slices of a moved lake would be processed again.

    Args:
        chain: The slices of the entity.
        names: Returns the names of the slices that are in its bronze folder now; not called where slices were
            processed here.
    """
    store, application, place = chain.store, chain.application, item_id(chain.bronze)
    if first_processed(store, application, chain.prefix) is not None:
        return None
    present = names()
    if not present:
        return None
    # Another run may have processed the first slice here since the question above.
    found = (
        item for item in processed_items(store, application) if not item.item_id.startswith(chain.prefix)
    )
    before = next((item for item in found if slice_name(item) in present), None)
    if before is None:
        return None
    old = before.item_id.rpartition("/")[0]
    return LakeMoved(
        f"slices of {application} were processed in {old}, and are in {place} now",
        remedy=Phrase(
            "If the lake was moved or copied, update the manifest with ",
            Command("manifest", "move", old, place),
            ". If these are other slices, run DESTROY first to start over.",
        ),
        details={"old": old, "new": place},
    )


def former_name_error(chain: SliceChain) -> LakeMoved | None:
    """Return the error of a table that holds slices of another application, and none of its own; or None."""
    own, silver = chain.application, chain.silver
    if chain.first_processed is not None or chain.last_number is not None:
        return None
    if observe_table(chain.lake, silver).is_empty:
        return None
    others = {app.key for standing in chain.store.standings() for app in standing.processed}
    formers = (replace(chain, application=Application.named(*key)) for key in sorted(others, key=str))
    former = next((each.application for each in formers if _has_committed(each)), None)
    if former is None:
        return None
    name, of_project = former.name.rpartition("/")[2], own.name.rpartition("/")[0]
    is_entity = former.name == f"{of_project}/{name}"
    back = f"Declare moved_from: {name} at the entity" if is_entity else "Give the project its former name"
    return LakeMoved(
        f"{silver} holds slices of {former}, and none of {own}: the "
        f"{'entity' if is_entity else 'project'} has another name now",
        remedy=f"{back} to go on with the table. To start over, run TRUNCATE, which empties it.",
        details={"old": str(former), "new": str(own)},
    )


def _has_committed(chain: SliceChain) -> bool:
    return is_of_lakewright(chain.application) and chain.last_number is not None


def find_loss(chain: SliceChain) -> TargetError | None:
    """Return the error of a table that is gone, or lacks commits of processed slices, or None."""
    error = None
    for _ in range(2):  # another run may have committed, and then recorded, a slice since the first look
        is_there = observe_table(chain.lake, chain.silver).exists
        error = _older_table_error(chain) if is_there else _lost_table_error(chain)
        if error is None:
            break
    return error


def _lost_table_error(chain: SliceChain) -> TargetError | None:
    """Return the error of a table that does not exist although a slice is processed into it, or None."""
    processed = chain.first_processed
    if processed is None:
        return None
    return TargetError(
        f"entity {chain.entity.called!r}: the manifest counts slices such as {slice_name(processed)} as "
        f"processed into {chain.silver}, but no table exists there",
        remedy=Phrase(
            "Bring the table back, or correct the place of silver if it was moved. ",
            rebuild_command(chain.entity).plus("--yes"),
            " makes it again from its slices.",
        ),
    )


def _older_table_error(chain: SliceChain) -> TargetError | None:
    """Return the error of a table that lacks commits which the manifest has recorded, or None.

    It is an older copy. A RESTORE does not count: it keeps the numbers of commits.
    """
    last = chain.last_number
    lacked = lacked_items(chain, last)
    if not lacked:
        return None
    has = "has" if len(lacked) == 1 else "have"
    # Without a commit of a slice, the rows are those of another program, which only the option drops.
    options = ("--yes",) if last is not None else ("--over-foreign", "--yes")
    return TargetError(
        f"entity {chain.entity.called!r}: {chain.silver} is older than the manifest: "
        f"{counted(len(lacked), 'slice')}, such as {slice_name(lacked[0])}, {has} been processed by "
        "commits that its log does not have",
        remedy=Phrase(
            "Bring the newer table back if there is one. ",
            rebuild_command(chain.entity).plus(*options),
            " makes it again from its slices.",
        ),
    )


def lacked_items(chain: SliceChain, last: int | None) -> tuple[Item, ...]:
    """Return processed items of which a table lacks the commits, the newest first, as an older copy does.

    Args:
        chain: The slices of the entity, whose table exists.
        last: The number of the application's last commit in the table's log; None if there is none.
    """
    if (last or 0) >= chain.last_given_number:
        return ()
    store, application = chain.store, chain.application
    processed = {each for each in store.standings() if each.verdict(application) is Verdict.PROCESSED}
    newest = store.select(Group(frozenset(processed)), Reading(is_newest_first=True, limit=_MOST_ITEMS))
    later = [item for item in newest if item.tokens.get(application.key, 0) > (last or 0)]
    marks = {
        (item.item_id, mark.sequence): item
        for item in later
        if (mark := item.processed_by(application)) is not None
    }
    return tuple(
        marks[place]
        for place, record in store.find_records(list(marks)).items()
        # Slices that have changed nothing never had a commit.
        if isinstance(record, Record) and record.content.get("delta_version") is not None
    )


def check_table_not_lost(context: ProcessingContext, entity: Entity) -> TableState:
    """Return the state of the silver table.

    Raises:
        TargetError: Slices count as processed, but the table does not exist, or lacks their commits.
    """
    chain = context.chain(entity)
    if (error := find_loss(chain)) is not None:
        raise error
    return observe_table(chain.lake, chain.silver)


ROWS_CHANGED = "rows_changed"
"""Code and alert of rows that another program has changed."""

_MOST_NAMED = 3


def commits_of_others(lake: Lake, address: Address) -> tuple[Commit, ...]:
    """Return the commits of other programs that changed rows since Lakewright's last commit, oldest first.

    There are none if Lakewright has made no commit to the table, or if a RESTORE has taken them back. Usually
    one commit is read.
    """
    found = commits_since(lake, address, lambda commit: "app" in commit.content)
    return () if found is None else standing_changes(lake, address, found)


def find_other_writers(context: ProcessingContext, entity: Entity) -> Fault | None:
    """Return that other programs have changed rows of an entity's table; None if none has.

    An empty table counts as changed only if slices count as processed into it: TRUNCATE makes the manifest
    forget them.
    """
    chain = context.chain(entity)
    commits = commits_of_others(chain.lake, chain.silver)
    if not commits or chain.first_processed is None:
        return None
    state = observe_table(chain.lake, chain.silver)
    return others_fault(entity, commits, is_refused=refusal_of(context, entity, state) is not None)


def refusal_of(context: ProcessingContext, entity: Entity, state: TableState) -> LakewrightError | None:
    """Return why a run processes no slice into a table as it is now; None if it does."""
    allowed = context.options.permissions.allow_data_loss
    return table_refusal(state, context.strategy_for(entity), entity, allow_data_loss=allowed)


def table_refusal(
    state: TableState, strategy: Strategy, entity: Entity, *, allow_data_loss: bool = False
) -> LakewrightError | None:
    """Return why no slice is processed into a table as it is now; None if slices are."""
    if is_adoptable(entity, state):
        return None
    try:
        check_table_compatible(state, strategy, entity, allow_data_loss=allow_data_loss)
    except LakewrightError as error:
        return error
    return None


def others_fault(entity: Entity, commits: Sequence[Commit], *, is_refused: bool = False) -> Fault:
    """Return that commits of other programs have changed rows of an entity's table, with what to type.

    Args:
        entity: The entity.
        commits: The commits, oldest first.
        is_refused: Whether no slice is processed into the table as it is now.
    """
    shown = first_of([commit_text(each) for each in commits], _MOST_NAMED)
    # A TRUNCATE is signed, but has no token. It makes the manifest forget the slices.
    if all(map(is_own, commits)):
        said = (
            f"rows of {entity.called} were removed by a TRUNCATE, which the manifest does not know: {shown}"
        )
    else:
        said = (
            f"rows of {entity.called} were changed by another program since Lakewright's last commit: {shown}"
        )
    slices = "No slice is processed into" if is_refused else "Slices go on with"
    return Fault(
        said,
        remedy=Phrase(
            f"{slices} the rows as they are now. If the change is unwanted, ",
            rebuild_command(entity).plus("--over-foreign"),
            " makes the table again from its slices.",
        ),
        code=ROWS_CHANGED,
        details={"alerts": [ROWS_CHANGED], "versions": [each.version for each in commits]},
    )
