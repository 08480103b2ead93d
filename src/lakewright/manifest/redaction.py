"""Removing secrets from what is recorded, logged or shown.

Source: `processing-manifest.md`, "Record" (payloads). Keeping secrets out is Lakewright's addition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from lakewright.spec.expressions.secrets import HIDDEN, is_secret_name

SHORTEST = 3
"""Shorter values are not removed: they occur so often by chance that texts would become unreadable."""

SHORTEST_ANYWHERE = 8
"""Shorter values are removed only as whole words, not from inside other words."""

NO_SECRETS = frozenset(("true", "false", "none", "null", "auto", "default", "yes", "no", "on", "off"))

# Repetitions before the searched part are bounded, so that searching a long text stays linear.
_URL_CREDENTIALS = re.compile(
    r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.\-]{0,30}://)"
    # In Azure, it is the container that stands before the account.
    r"(?!(?:(?<=\babfs://)|(?<=\babfss://))[^\s/:@]*@)"
    r"[^\s/'\"?#]*@"
)
_ASSIGNED = re.compile(
    r"(?P<name>(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|"
    r"signature|credential|(?:access|auth|sas|security|session|bearer|refresh)[_-]?token|\b(?:pwd|sig|token))"
    # `<name>` is a placeholder for a value.
    r"\s*=\s*)(?!<[\w:]+>(?:[\s`]|$))(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&,'\")}\]]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Removes known secrets, credentials in URLs and values of `password=…` pairs from text.

    Attributes:
        secrets: The values to remove, also in the spellings of URLs, JSON and Python.
        met: Further secrets. The set may grow while the redactor is used, as expressions are evaluated.
    """

    secrets: frozenset[str] = frozenset()
    met: Set[str] = field(default=frozenset(), repr=False, compare=False)
    _patterns: dict[int, re.Pattern[str] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(
        cls, *entries: Mapping[str, str], secrets: Iterable[str] = (), met: Set[str] = frozenset()
    ) -> Redactor:
        """Return the redactor for the values of entries with a secret name, and for further secrets."""
        named = (value for mapping in entries for name, value in mapping.items() if is_secret_name(name))
        return cls(frozenset(secrets) | frozenset(named), met)

    @property
    def _pattern(self) -> re.Pattern[str] | None:
        """The pattern of all secrets known now; compiled again when `met` has grown."""
        count = len(self.met)
        if count not in self._patterns:
            self._patterns[count] = _pattern_of(self.secrets | frozenset(self.met))
        return self._patterns[count]

    def text(self, text: str) -> str:
        """Return the text without secrets.

        Example:
            >>> Redactor.of({"DB_PASSWORD": "hunter2!"}).text("login hunter2! at jdbc:pg://me:x@db/lake")
            'login *** at jdbc:pg://***@db/lake'
        """
        hidden = text
        if (pattern := self._pattern) is not None:
            hidden = pattern.sub(HIDDEN, hidden)
        if "://" in hidden:
            hidden = _URL_CREDENTIALS.sub(rf"\g<scheme>{HIDDEN}@", hidden)
        if "=" in hidden:
            hidden = _ASSIGNED.sub(rf"\g<name>{HIDDEN}", hidden)
        return text if hidden == text else hidden  # a phrase stays one

    def value(self, value: Any) -> Any:
        """Return a JSON value of ours without the secrets in its texts.

        Keys are kept at every depth: they are names of our documents, of columns and of settings, which a
        secret with the same text must not hide.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {str(name): self.value(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(member) for member in value]
        return value

    def foreign(self, value: Any) -> Any:
        """Return a JSON value of another program without secrets, neither in its texts nor in its keys."""
        if isinstance(value, Mapping):
            return {
                self.text(str(name)): HIDDEN if is_secret_name(str(name)) and member else self.foreign(member)
                for name, member in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.foreign(member) for member in value]
        return self.value(value)

    def entries(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """Return configuration entries without secrets; an entry with a secret name is hidden entirely."""
        return {
            name: HIDDEN if is_secret_name(name) and value else self.value(value)
            for name, value in entries.items()
        }


def _pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    worth_hiding = {
        s.strip() for s in secrets if len(s.strip()) >= SHORTEST and s.strip().lower() not in NO_SECRETS
    }
    spellings = {spelling for secret in worth_hiding for spelling in _spellings(secret)}
    if not spellings:
        return None
    longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
    return re.compile("|".join(_alternative(spelling) for spelling in longest_first))


def _alternative(spelling: str) -> str:
    escaped = re.escape(spelling)
    return escaped if len(spelling) >= SHORTEST_ANYWHERE else rf"(?<!\w){escaped}(?!\w)"


def _spellings(secret: str) -> Iterable[str]:
    yield secret
    yield "".join(c if c.isascii() and (c.isalnum() or c in "-._~") else _percent(c) for c in secret)
    yield from (json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))
    yield repr(secret)[1:-1]


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode(errors="surrogatepass"))
