"""Names of columns as messages show them, and names that differ only in what cannot be seen.

Source: the rules of reading, "Places".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def shown(name: str) -> str:
    r"""Return a name in quotes; what cannot be seen, or looks like a space, is shown as its code.

    Example:
        >>> shown("id\u00a0"), shown(" it's"), shown("Größe")
        ("'id\\u00a0'", '" it\'s"', "'Größe'")
    """
    mark = '"' if "'" in name and '"' not in name else "'"
    return mark + "".join(_shown(sign, mark) for sign in name) + mark


def _shown(sign: str, mark: str) -> str:
    if sign.isprintable():
        return f"\\{sign}" if sign in ("\\", mark) else sign
    known = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}.get(sign)
    return known or (f"\\u{ord(sign):04x}" if ord(sign) < 1 << 16 else f"\\U{ord(sign):08x}")


def look_alike(name: str, present: Iterable[str]) -> tuple[str, str] | None:
    r"""Return the name among others that looks like a name although it is another one, and what differs.

    That is `invisible` for signs that cannot be seen and spaces at the ends, or `form` for the Unicode form.

    Example:
        >>> look_alike("id", ["name", "ID\u200b"]), look_alike("é", ["e\u0301"]), look_alike("id", ["ids"])
        (('ID\u200b', 'invisible'), ('e\u0301', 'form'), None)
    """
    own, seen = _formed(name), _visible(name)
    for other in present:
        if _formed(other) == own and other.lower() != name.lower():
            return other, "form"
        if _visible(other) == seen and other.lower() != name.lower():
            return other, "invisible"
    return None


def _formed(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _visible(name: str) -> str:
    """Return a name without spaces at its ends and signs that cannot be seen, in one Unicode form."""
    text = unicodedata.normalize("NFC", name)
    return "".join(filter(str.isprintable, text)).strip().casefold()
