"""Names of a list: the one that a text means, or suggestions of similar ones for the error."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)

# The time to compare names grows with their length and number, and a hostile file may hold very many.
LONGEST_COMPARED = 100
MOST_COMPARED = 2_000

ALIKE = 0.6
SLIP = 0.85
"""Similarity from which on a name is another one, misspelt, where unknown names are usual: `updated_at` is no
slip of `created_at`, and the applications of one company are always alike."""


def nearest(name: str, known: Iterable[str], *, cutoff: float = ALIKE) -> str | None:
    """Return the known name that is most similar to `name`, or None if none is similar.

    Case, underscores and hyphens are ignored.

    Args:
        name: The name.
        known: The known names.
        cutoff: The least similarity, from 0 to 1.

    Example:
        >>> nearest("tpye", ["kind", "type"]), nearest("nullKey", ["null_keys"], cutoff=SLIP)
        ('type', 'null_keys')
    """
    if len(name) > LONGEST_COMPARED:
        return None
    by_letters = {_letters(other): other for other in list(known)[:MOST_COMPARED]}
    found = get_close_matches(_letters(name), by_letters, n=1, cutoff=cutoff)
    return by_letters[found[0]] if found else None


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def one_of(kind: type[E], what: str, others: Mapping[str, str] | None = None) -> Callable[[str], E]:
    """Return a function that reads a member of an enumeration; case and underscores are ignored.

    It raises a `ValueError` with the valid words for a text that names no member.

    Args:
        kind: The enumeration.
        what: What a member is, in words.
        others: Other names, in lower case without underscores, and the values that they mean.

    Example:
        >>> read = one_of(StrEnum("Mode", {"FAIL_FAST": "FAIL_FAST"}), "mode", {"strict": "FAIL_FAST"})
        >>> read("failFast"), read("strict")
        (<Mode.FAIL_FAST: 'FAIL_FAST'>, <Mode.FAIL_FAST: 'FAIL_FAST'>)
    """

    def read(text: str) -> E:
        letters = _letters((others or {}).get(_letters(text), text))
        for member in kind:
            if _letters(member.value) == letters:
                return member
        raise ValueError(f"no {what} {text!r}; {hint(text, kind)}")

    return read


def meant(name: str, known: Iterable[str], *, cutoff: float = ALIKE) -> str | None:
    """Return a remedy with the known name that is probably meant, or None if none is similar.

    Example:
        >>> meant("tpye", ["kind", "type"]), meant("other", ["kind", "type"])
        ("did you mean 'type'?", None)
    """
    found = nearest(name, known, cutoff=cutoff)
    return None if found is None else f"did you mean {found!r}?"


def hint(name: str, known: Iterable[str]) -> str:
    """Return the start of a list of valid words, after the word that is probably meant.

    Example:
        >>> hint("smrt", ["ALWAYS", "SMART"])
        "did you mean 'SMART'? There are ALWAYS, SMART"
    """
    words = [str(word) for word in known]
    found, listed = meant(name, words), ", ".join(words)
    return f"there are {listed}" if found is None else f"{found} There are {listed}"


def suggestion(name: str, known: Iterable[str], *, shown: int = 12) -> str | None:
    """Return a remedy for an unknown name: a similar known name, or else the known names.

    Example:
        >>> suggestion("tpye", ["kind", "type"]), suggestion("other", ["kind", "type"])
        ("did you mean 'type'?", 'there are: kind, type')
    """
    names = [str(each) for each in known]
    if (found := meant(name, names)) or not names:
        return found
    return f"there are: {', '.join(sorted(names)[:shown])}{', …' if len(names) > shown else ''}"


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
