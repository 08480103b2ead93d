"""Names of a list: the one that a text means, or suggestions of similar ones for the error."""

from __future__ import annotations

from collections.abc import Container, Iterable
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

__all__ = ["hint", "member_named", "nearest", "suggestion", "way_to_read"]

E = TypeVar("E", bound=StrEnum)

# The time to compare names grows with their length and number, and a hostile file may hold very many.
LONGEST_COMPARED = 100
MOST_COMPARED = 2_000


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to `name`, ignoring case, or None if none is similar.

    Args:
        name: The name.
        known: The known names.
        cutoff: The least similarity, from 0 to 1.

    Example:
        >>> nearest("tpye", ["kind", "type"])
        'type'
    """
    if len(name) > LONGEST_COMPARED:
        return None
    by_lower = {other.lower(): other for other in list(known)[:MOST_COMPARED]}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None


def member_named(kind: type[E], text: str) -> E | None:
    """Return the member of an enumeration that a text names; case and underscores are ignored.

    Example:
        >>> class Mode(StrEnum):
        ...     FAIL_FAST = "failFast"
        >>> member_named(Mode, "fail_fast"), member_named(Mode, "fast")
        (<Mode.FAIL_FAST: 'failFast'>, None)
    """

    def squeezed(name: str) -> str:
        return name.replace("_", "").lower()

    return next((member for member in kind if squeezed(member.value) == squeezed(text)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """Return the start of a list of valid words, after the word that is probably meant.

    Example:
        >>> hint("smrt", ["ALWAYS", "SMART"])
        "did you mean 'SMART'? There are ALWAYS, SMART"
    """
    words = [str(word) for word in known]
    found = nearest(name, words)
    listed = ", ".join(words)
    return f"there are {listed}" if found is None else f"did you mean {found!r}? There are {listed}"


def suggestion(name: str, known: Iterable[str], *, shown: int = 12) -> str | None:
    """Return a remedy for an unknown name: a similar known name, or else the known names.

    Example:
        >>> suggestion("tpye", ["kind", "type"])
        "did you mean 'type'?"
    """
    names = [str(each) for each in known]
    if found := nearest(name, names):
        return f"did you mean {found!r}?"
    if not names or not shown:
        return None
    listed = ", ".join(sorted(names)[:shown])
    return f"there are: {listed}{', …' if len(names) > shown else ''}"


def way_to_read(name: str, relations: Container[str]) -> str | None:
    """Return what to declare so that a query can read a relation; None if `name` is none.

    Example:
        >>> way_to_read("o", {"o"})
        "'o' is a relation; declare the mapping that reads it: `o: {kind: relation, relation: o}`"
    """
    if name not in relations:
        return None
    mapping = f"`{name}: {{kind: relation, relation: {name}}}`"
    return f"{name!r} is a relation; declare the mapping that reads it: {mapping}"
