"""Commits by which other programs changed the rows of a silver table since Lakewright's last commit to it.

Slices are compared with the rows as they are now, so that a run goes on with such changes, unless it refuses
the table as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError
from lakewright.lake.commit import commit_text, commits_since
from lakewright.lake.commit_effects import is_own, standing_changes
from lakewright.lake.observation import observe_table
from lakewright.slices.processed import first_processed
from lakewright.spec.words import first_of
from lakewright.strategies.adoption.columns import is_adoptable
from lakewright.strategies.compatibility import check_table_compatible
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.lake.commit import Commit
    from lakewright.lake.lake import Lake
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address

__all__ = ["ROWS_CHANGED", "commits_of_others", "find_other_writers", "others_fault"]

ROWS_CHANGED = "rows_changed"
"""Code and alert of rows that another program has changed."""

_MOST_NAMED = 3


def commits_of_others(lake: Lake, address: Address) -> tuple[Commit, ...]:
    """Return the commits of other programs that changed rows since Lakewright's last commit, oldest first.

    There are none if Lakewright has made no commit to the table, or if a RESTORE has taken them back. Usually
    one commit is read.
    """
    found = commits_since(lake, address, lambda commit: "app" in commit.content)
    foreign = None if found is None else standing_changes(lake, address, found)
    return () if foreign is None else foreign.commits


def find_other_writers(context: ProcessingContext, entity: Entity) -> Fault | None:
    """Return that other programs have changed rows of an entity's table; None if none has.

    An empty table counts as changed only if slices count as processed into it: TRUNCATE makes the manifest
    forget them.
    """
    silver = entity.places(context.lake.settings).silver
    commits = commits_of_others(context.lake, silver)
    if not commits or first_processed(context.ledger.store, context.application) is None:
        return None
    return others_fault(entity, commits, is_refused=_is_refused(context, entity, silver))


def _is_refused(context: ProcessingContext, entity: Entity, silver: Address) -> bool:
    """Return whether no slice is processed into the table as it is now."""
    state = observe_table(context.lake, silver)
    if is_adoptable(entity, state):
        return False
    try:
        allowed = context.options.permissions.allow_data_loss
        check_table_compatible(state, context.strategy_for(entity), entity, allow_data_loss=allowed)
    except LakewrightError:
        return True
    return False


def others_fault(entity: Entity, commits: Sequence[Commit], *, is_refused: bool = False) -> Fault:
    """Return that commits of other programs have changed rows of an entity's table, with what to type.

    Args:
        entity: The entity.
        commits: The commits, oldest first.
        is_refused: Whether no slice is processed into the table as it is now.
    """
    told = first_of([commit_text(each) for each in commits], _MOST_NAMED)
    # A TRUNCATE is signed, but has no token. It makes the manifest forget the slices.
    if all(map(is_own, commits)):
        said = f"rows of {entity.called} were removed by a TRUNCATE, which the manifest does not know: {told}"
    else:
        said = (
            f"rows of {entity.called} were changed by another program since Lakewright's last commit: {told}"
        )
    slices = "No slice is processed into" if is_refused else "Slices go on with"
    return Fault(
        said,
        remedy=f"{slices} the rows as they are now. If the change is unwanted, "
        f"`{rebuild_command(entity)} --over-foreign` makes the table again from its slices.",
        code=ROWS_CHANGED,
        details={"alerts": [ROWS_CHANGED], "versions": [each.version for each in commits]},
    )
