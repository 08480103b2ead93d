"""Rendering of the page's templates: everything is escaped, and free of secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.filters import do_filesizeformat
from jinja2.runtime import Context
from markupsafe import Markup, escape

from lakewright.due.words import (
    choice_argv,
    choice_words,
    consent_argv,
    looks,
    step_words,
)
from lakewright.errors.phrase import Command
from lakewright.manifest.record import format_instant, parse_instant
from lakewright.spec import words

if TYPE_CHECKING:
    from lakewright.manifest.redaction import Redactor


def render(template: str, values: Mapping[str, Any], redactor: Redactor) -> str:
    """Return a page; every text in it is without the secrets that the redactor knows."""
    return _environment().get_template(template).render(**values, redact=cache(redactor.text))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lakewright.serve.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_secrets,
    )
    environment.filters |= {
        "ago": ago,
        "bytes": size,
        "choice_words": choice_words,
        "coded": coded,
        "duration": duration,
        "instant": _instant,
        "looks": looks,
        "machine": format_instant,
        "number": number,
        "step_words": step_words,
        "url": lambda text: quote(str(text), safe=""),
        "typed_choice": lambda choice: Command(*choice_argv(choice)),
        "typed_consent": lambda step: Command(*consent_argv(step)),
        "utc": utc,
    }
    environment.globals |= {"link": link}
    return environment


@pass_context
def _without_secrets(context: Context, value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    # A page has thousands of texts; `context["redact"]` looks through all of the template's own names first.
    redact: Callable[[str], str] = context.parent["redact"]
    return redact(value)


def link(path: str, **query: object) -> str:
    """Return a path with a query; parameters that are None are left out.

    Example:
        >>> link("/item", id="file:///a b", before=None)
        '/item?id=file%3A%2F%2F%2Fa+b'
    """
    given = {name: value for name, value in query.items() if value not in (None, "", ())}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def duration(seconds: float | None) -> str:
    """Return a duration for people to read.

    Example:
        >>> duration(0.04), duration(12.34), duration(754), duration(None)
        ('0.04 s', '12.3 s', '12 min 34 s', '')
    """
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds < 1 else words.duration(seconds)


def ago(since: datetime, now: datetime) -> str:
    """Return how long ago an instant was, roughly.

    Example:
        >>> ago(datetime(2022, 1, 1), datetime(2022, 1, 1, 3, 20))
        '3 h'
    """
    passed = max(now - since, timedelta())
    seconds = int(passed.total_seconds())
    return next((f"{seconds // one} {unit}" for one, unit in words.UNITS if seconds >= one), "0 s")


def number(value: float | None) -> str:
    """Return a number with its thousands apart.

    Example:
        >>> number(1234567), number(None)
        ('1 234 567', '')
    """
    return "" if value is None else f"{value:,.0f}".replace(",", " ")


def size(value: int | None) -> str:
    """Return a number of bytes for people to read.

    Example:
        >>> size(999), size(1_500_000)
        ('999 B', '1.5 MB')
    """
    # Jinja's filter writes out "Bytes".
    return "" if value is None else do_filesizeformat(value).partition("yte")[0]


def utc(at: datetime) -> str:
    """Return an instant to the second, as people read it."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


@pass_context
def coded(context: Context, text: str) -> Markup:
    """Return a text in which what stands between backticks is code, escaped and without secrets."""
    parts = _without_secrets(context, str(text)).split("`")
    shown = (Markup("<code>{}</code>").format(p) if at % 2 else escape(p) for at, p in enumerate(parts))
    return Markup("").join(shown)


def _instant(at: datetime | str) -> datetime:
    return parse_instant(at) if isinstance(at, str) else at
