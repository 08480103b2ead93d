"""Guard of a commit that replaces what was read: the table's lock, and the check that it has not changed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from lakewright.errors import CommitConflict
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.observation import local_table_path, observe_table
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.lake.table_state import TableState

__all__ = ["check_unchanged", "table_lock"]


def table_lock(lake: Lake, address: Address, holder: str) -> AbstractContextManager[None]:
    """Return the lock that guards commits to a table; a catalog's table can be on this machine too.

    Args:
        lake: The lake.
        address: The table.
        holder: Who commits, shown to those who wait.
    """
    path = local_table_path(lake, address)
    return commit_lock(address if path is None else Address(location=str(path)), holder)


def check_unchanged(
    lake: Lake, address: Address, state: TableState, since: str, *, remedy: str | None = None
) -> None:
    """Raise `CommitConflict` if a table has changed since it was observed.

    Args:
        lake: The lake.
        address: The table.
        state: The table as it was observed.
        since: What happened since, as a clause that ends the message.
        remedy: What to do; the error's own remedy unless given.
    """
    found = observe_table(lake, address).version
    if found != state.version:
        raise CommitConflict(
            f"{address} went from version {state.version} to {found} {since}",
            remedy=remedy,
            details={"seen": state.version, "found": found},
        )
