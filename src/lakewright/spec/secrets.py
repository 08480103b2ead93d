"""Which names hold secrets, and their values kept out of what is shown.

Source: the manifest's rules, "Payloads": configuration and environment entries whose key names a password,
token, key or secret, and credentials in URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["credentials_in", "is_secret_name", "without_secrets"]

SHORTEST = 3
HIDDEN = "***"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    (
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "pass",
        "secret",
        "token",
        "key",
        "apikey",
        "credential",
        "credentials",
    )
)
_HARMLESS_BEFORE_KEY = frozenset(("business", "primary", "foreign", "partition", "merge", "unique", "sort"))
_URL_CREDENTIALS = re.compile(r"\b[A-Za-z][\w+.-]*://[^\s/:@]*:([^\s@/]+)@")


def is_secret_name(name: str) -> bool:
    """Return whether the name of an entry says that its value is a secret.

    Example:
        >>> is_secret_name("AWS_SECRET_ACCESS_KEY"), is_secret_name("jdbcPassword"), is_secret_name("keyspace")
        (True, True, False)
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    if words[-1] == "key" and len(words) > 1 and words[-2] in _HARMLESS_BEFORE_KEY:
        return False
    return (
        words[-1] in _SECRET_WORDS
        or not _SECRET_WORDS.isdisjoint(words[:-1])
        and words[-1] in ("value", "id", "text")
    )


def credentials_in(text: str) -> frozenset[str]:
    """Return the passwords that stand in the URLs of a text.

    Example:
        >>> sorted(credentials_in("postgresql://me:hush@db/lake"))
        ['hush']
    """
    return frozenset(_URL_CREDENTIALS.findall(text)) if "://" in text else frozenset()


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret, and every credential of a URL, replaced by `***`."""
    found = {secret for secret in secrets if len(secret) >= SHORTEST} | credentials_in(text)
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text
