"""Marks of places: short texts that are other ones once the rows of a place may be others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.files import digest_of_listing, is_pattern
from lakewright.lake.observation import log_stamp, observe_table, open_log
from lakewright.lake.paths import is_stored, local_path
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.plan.resource import Resource


ABSENT = ""
"""The mark of a place at which nothing is."""

UNSEEN = "?"
"""The mark of a place that can't be looked at without Spark, such as a table of a database."""


def mark_of(lake: Lake, place: Resource, *, with_spark: bool = False) -> str:
    """Return the mark of a place: the identity and version of a table, or a digest of names, sizes and times.

    Args:
        lake: The lake.
        place: The place.
        with_spark: Whether Spark is asked for what can't be looked at without it.
    """
    is_seen = place.category == "file" and (is_stored(place.name) or local_path(place.name) is not None)
    try:
        if place.category == "table" and with_spark:
            version = observe_table(lake, Address(name=place.name)).version
            return UNSEEN if version is None else f"{place.name}@{version}"
        if not (is_seen or (with_spark and place.category == "file")):
            return UNSEEN
        if may_be_table(place.name):
            table = open_log(lake, Address(location=place.name)).table
            if table is not None:
                return f"{table.metadata().id}@{table.version()}"
        digest = digest_of_listing(lake, [place.name])
        return ABSENT if digest is None else digest[:16]
    except (LakewrightError, OSError):
        return UNSEEN


def stamp_of(lake: Lake, place: Resource) -> str:
    """Return a text that differs whenever the mark of a place does; no log on this machine is read for it."""
    if place.category == "file" and local_path(place.name) is not None and may_be_table(place.name):
        stamp = log_stamp(lake, Address(location=place.name))
        if stamp is not None:
            return stamp
    return mark_of(lake, place)


def may_be_table(name: str) -> bool:
    """Return whether a table may be at a place, which is no file and no pattern."""
    local = local_path(name)
    return not is_pattern(name) and (local is None or local.is_dir())


def version_of(mark: str) -> tuple[str, int] | None:
    """Return the identity and the version of a table that a mark is of; None if it is of something else.

    Example:
        >>> version_of("7b0f@12"), version_of("")
        (('7b0f', 12), None)
    """
    name, is_table, version = mark.rpartition("@")
    return (name, int(version)) if is_table else None
