"""Detection of secrets by the names of entries, and of passwords in URLs.

Source: the manifest's rules, "Payloads": configuration and environment entries whose key names a password,
token, key or secret, and credentials in URLs.
"""

from __future__ import annotations

import re

HIDDEN = "***"
"""The text that replaces a secret."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    (
        *("password", "passwords", "passwd", "pwd", "passphrase", "credential", "credentials"),
        *("secret", "secrets", "token", "tokens", "key", "keys"),
    )
)
_SECRET_ENDINGS = ("password", "passwd", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey")
_HARMLESS_BEFORE_KEY = frozenset(("business", "primary", "foreign", "partition", "merge", "unique", "sort"))
_FOLDERS = frozenset(("PWD", "OLDPWD"))
"""Working directories of a shell. `PWD` does not mean a password here."""

_SECRET_HEADERS = frozenset(("authorization", "proxy-authorization", "cookie", "set-cookie"))

_URL_PASSWORD = re.compile(r"[?&;]password=([^&;\s'\"]+)")
_URL_CREDENTIALS = re.compile(r"\b[A-Za-z][\w+.-]*://[^\s/:@]*:([^\s@/]+)@")


def is_secret_name(name: str) -> bool:
    """Return whether the name of an entry denotes a secret.

    Example:
        >>> [is_secret_name(name) for name in ("AWS_SECRET_ACCESS_KEY", "jdbcPassword", "keyspace", "PWD")]
        [True, True, False, False]
    """
    if name in _FOLDERS:
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    if words[-1:] in (["key"], ["keys"]) and not _HARMLESS_BEFORE_KEY.isdisjoint(words[-2:-1]):
        return False
    return not _SECRET_WORDS.isdisjoint(words) or any(word.endswith(_SECRET_ENDINGS) for word in words)


def is_secret_header(name: str) -> bool:
    """Return whether the name is that of an HTTP header with credentials, which is no name of an entry.

    Example:
        >>> [is_secret_header(name) for name in ("Authorization", "Cookie", "Content-Type")]
        [True, True, False]
    """
    return name.lower() in _SECRET_HEADERS


def credentials_in(text: str) -> frozenset[str]:
    """Return the passwords in the URLs of a text, including JDBC URLs.

    Example:
        >>> sorted(credentials_in("postgresql://me:hush@db/lake jdbc:x://db/lake?password=secret&a=b"))
        ['hush', 'secret']
    """
    if "://" not in text:
        return frozenset()
    return frozenset((*_URL_CREDENTIALS.findall(text), *_URL_PASSWORD.findall(text)))
