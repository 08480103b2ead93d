"""The commit of a rewind to the entity's table: the table as it was seen, and nothing in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright.errors import LeaseLost
from lakewright.lake.commit import Commit, Token, carrying_token, read_commits
from lakewright.lake.failpoint import reach_failpoint
from lakewright.strategies.table_guard import check_unchanged, table_lock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.table_state import TableState
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.places import Address

__all__ = ["commit_rewind", "find_rewind"]


def commit_rewind(
    context: ProcessingContext,
    session: SparkSession,
    address: Address,
    state: TableState,
    token: Token,
    *,
    write: Callable[[], None],
    check: Callable[[], None],
) -> Commit:
    """Make the commit of a rewind and return it.

    Args:
        context: The context of the processing.
        session: The session in which `write` makes exactly one commit.
        address: The table.
        state: The table as it was observed.
        token: Carried by the commit; its content has the id of the rewind.
        write: Makes the commit.
        check: Raises `LeaseLost` if the lease on the table is no longer held.

    Raises:
        CommitConflict: The table has changed since it was observed; nothing was written.
        LeaseLost: The lease is lost; nothing was written.
    """
    lake = context.lake
    with table_lock(lake, address, str(context.holder)):
        check_unchanged(lake, address, state, "since this began", remedy="Type the command again.")
        check()
        reach_failpoint("before_rewind")
        with carrying_token(session, token):
            write()
        reach_failpoint("after_rewind")
    found = find_rewind(context, address, token.content["rewind"]["id"])
    if found is None:
        raise LeaseLost(f"the commit to {address} did not land", remedy="Type the command again.")
    expected = 0 if state.version is None else state.version + 1
    if found.version != expected:
        # Nothing keeps another program from a commit between the check and the write.
        context.warn(
            f"{address}: another program committed version {expected} just before version {found.version}, "
            "which does not have its rows; Delta's time travel reads them"
        )
    return found


def find_rewind(context: ProcessingContext, address: Address, rewind_id: str) -> Commit | None:
    """Return the commit of a rewind, if the table's log has it."""
    for commit in reversed(read_commits(context.lake, address)):
        if (commit.content.get("rewind") or {}).get("id") == rewind_id:
            return commit
    return None
