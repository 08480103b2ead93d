"""A table that holds slices of another application of Lakewright: the project or the entity had another name.

Under its new name, all slices would be processed again, on top of their own rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import LakeMoved
from lakewright.lake.observation import last_commit_number, observe_table
from lakewright.manifest.record import Application
from lakewright.slices.application import is_of_lakewright
from lakewright.slices.processed import first_processed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakewright.lake.lake import Lake
    from lakewright.manifest.store import Store
    from lakewright.spec.models.places import Address

__all__ = ["former_name_error", "processed_by"]


def former_name_error(
    lake: Lake, store: Store, silver: Address, application: Application, others: Iterable[Application]
) -> LakeMoved | None:
    """Return the error of a table that holds slices of another application, and none of its own; or None.

    Args:
        lake: The lake.
        store: The manifest.
        silver: The table.
        application: The application that is to process slices into it.
        others: Applications that have processed slices; those that are not Lakewright's do not count.
    """
    names = sorted({each.key for each in others if is_of_lakewright(each)} - {application.key}, key=str)
    if not names or first_processed(store, application) is not None:
        return None
    if last_commit_number(lake, silver, str(application)) is not None or observe_table(lake, silver).is_empty:
        return None
    found = (
        each for each in (Application.named(*name) for name in names) if _has_written(lake, silver, each)
    )
    former = next(found, None)
    if former is None:
        return None
    return LakeMoved(
        f"{silver} holds slices of {former}, and none of {application}: the project or the entity has "
        "another name now",
        remedy="Give it its former name back to go on with the table. To start over, run TRUNCATE, which "
        "empties it.",
        details={"old": str(former), "new": str(application)},
    )


def processed_by(store: Store, item_ids: Sequence[str]) -> Iterable[Application]:
    """Return the applications that have processed these items."""
    return [mark.application for item in store.read(item_ids).values() for mark in item.processed]


def _has_written(lake: Lake, silver: Address, application: Application) -> bool:
    return last_commit_number(lake, silver, str(application)) is not None
