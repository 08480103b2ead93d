"""Names that callers give: applications, and items by their id or their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from lakewright.errors import UsageError
from lakewright.manifest.item import Item
from lakewright.manifest.record import ANYONE, Application
from lakewright.manifest.standing import Standing

__all__ = ["Match", "known_names", "named_application", "own_application", "unknown_warnings"]

OWN = "lakewright/"
"""How the names of a project's entities start as applications."""

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


def own_application(text: str) -> Application:
    """Return the application that a text names, on whose behalf a program may write records.

    Raises:
        UsageError: The text names none, or an entity of a project.
    """
    application = named_application(text)
    if application.name.startswith(OWN):
        raise UsageError(
            f"{text} is an entity's application: only Lakewright writes its records",
            remedy="Choose a name that doesn't start with lakewright/.",
        )
    return application


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
        near = get_close_matches(str(application), known, n=1)
        listed = ", ".join(sorted(known)[:MOST_NAMED]) or "none"
        more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
        meant = f"; did you mean {near[0]}?" if near else ""
        warnings.append(f"{application} has no record in the manifest yet; known: {listed}{more}{meant}")
    return warnings


class Match:
    """Which items to take: all, those whose id matches a pattern of a shell, or a single one."""

    def __init__(self, pattern: str | None = None, *, item: str | None = None) -> None:
        self.pattern = pattern
        self.item = item

    @property
    def prefix(self) -> str:
        """The text that the ids of all these items start with."""
        if self.item is not None:
            return self.item
        pattern = self.pattern or ""
        wild = [pattern.find(sign) for sign in "*?[" if sign in pattern]
        return pattern[: min(wild)] if wild else pattern

    def includes(self, item: Item) -> bool:
        """Return whether an item is one of them."""
        if self.item is not None:
            return item.item_id == self.item
        return self.pattern is None or fnmatchcase(item.item_id, self.pattern)

    @property
    def is_everything(self) -> bool:
        """Whether every item is one of them."""
        return self.item is None and self.pattern is None
