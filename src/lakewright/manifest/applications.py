"""Applications as callers name them, and those that a manifest knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lakewright.errors import UsageError
from lakewright.manifest.record import ANYONE, Application
from lakewright.manifest.standing import Standing
from lakewright.spec.suggestions import SLIP, nearest

MOST_NAMED = 10


def named_application(text: str) -> Application:
    """Return the application that a text names: `name`, or `name:instance`.

    Raises:
        UsageError: The name or the instance is empty, or the name is `*`.

    Example:
        >>> str(named_application("acme/loader:north"))
        'acme/loader:north'
    """
    name, colon, instance = text.partition(":")
    if not name.strip() or (colon and not instance.strip()) or name == ANYONE.name:
        raise UsageError(f"{text!r} is not the name of an application", remedy="Write NAME or NAME:INSTANCE.")
    return Application.named(name, instance or None)


def known_names(standings: Iterable[Standing], own: Iterable[Application] = ()) -> list[str]:
    """Return the names of the applications that the manifest has records of, and those of a project."""
    seen = (
        each
        for standing in standings
        for each in (*standing.concerned, *standing.processed, *standing.skipped)
        if each != ANYONE
    )
    return sorted({str(each) for each in (*own, *seen)})


def unknown_warnings(applications: Iterable[Application], known: Collection[str]) -> list[str]:
    """Return a warning for each application that has no record yet, with those that have."""
    bare = {name.partition(":")[0] for name in known}
    warnings = []
    for application in applications:
        if application.name in bare and (application.instance_id is None or str(application) in known):
            continue
        near = nearest(str(application), known, cutoff=SLIP)
        listed = ", ".join(sorted(known)[:MOST_NAMED]) or "none"
        more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
        meant = f"; did you mean {near}?" if near else ""
        warnings.append(f"{application} has no record in the manifest yet; known: {listed}{more}{meant}")
    return warnings
