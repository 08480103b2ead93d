"""Names that programs give: their own application, and the items that they want."""

from __future__ import annotations

from fnmatch import fnmatchcase

from lakewright.errors import UsageError
from lakewright.manifest.applications import named_application
from lakewright.manifest.item import Item
from lakewright.manifest.record import Application

OWN = "lakewright/"
"""How the names of a project's entities start as applications."""


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
