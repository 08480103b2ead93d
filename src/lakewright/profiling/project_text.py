"""The project file that profiles give, in the short form, with the reasons as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.paths import is_stored, local_path, store_of
from lakewright.profiling.profile import EntityProfile, Profile
from lakewright.profiling.reason import Code, Reason, question_text

_PLAIN = re.compile(r"(?!.*(?:: | #))(?:[^\W\d][\w.-]*|[\w./][\w./:*=@+ -]*[\w./*])")
_NUMBER = re.compile(r"\d+|[0-9.+-][0-9.eE+:_-]*")
_RESERVED = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_COMMENTED_TEXTS = (Code.LEADING_ZERO, Code.MIXED, Code.DECIMAL_COMMA, Code.DAY_OR_MONTH, Code.LONG_NUMBER)


def project_text(name: str, profile: Profile, folder: Path) -> str:
    """Return the text of `project.yml`.

    Args:
        name: The project's name.
        profile: What its files show.
        folder: The folder of the project; places inside of it are written relative to it.
    """
    return "\n".join(
        (*_head(name, profile), "entities:", *_entities(profile, folder), *_questions(profile), "")
    )


def _head(name: str, profile: Profile) -> Iterator[str]:
    written, shown = Command("init", "--from"), Command("plan")
    yield f"# {Phrase('Written by ', written, '; the comments say why. ', shown, ' shows what it does.')}"
    yield f"name: {scalar_text(name)}"
    kinds = {store_of(each.group.place) for each in profile.entities} - {None}
    if kinds:
        sections = ", ".join(f"{kind}: {{}}" for kind in sorted(map(str, kinds)))
        yield f"storage: {{{sections}}}   # endpoint and keys are those of the environment"
    yield ""


def _entities(profile: Profile, folder: Path) -> Iterator[str]:
    for index, each in enumerate(profile.entities):
        if index:
            yield ""
        yield f"  {scalar_text(each.name)}:"
        yield from (f"    {line}" for line in _entity(each, folder))


def _entity(profile: EntityProfile, folder: Path) -> Iterator[str]:
    reasons = {
        "format": Reason.of(Code.AS_WRITTEN, files=profile.looked_at).text,
        "from": slices_reason(profile).text,
        "key": profile.key.reason.text,
        "strategy": profile.why_strategy.text,
        "deletes": profile.why_load.text,
    }
    if profile.why_strategy.code is Code.WITHOUT_HISTORY:
        reasons["strategy"] = reasons["deletes"]
    settings = profile.settings
    if not profile.key.columns:
        yield f"# no key: {reasons['key']}"
    for name, value in settings.items():
        if name == "columns":
            continue
        shown = _place(value, folder) if name == "from" else _flow(value)
        yield _commented(f"{name}: {shown}", reasons.get(name))
    yield from _columns(profile)


def slices_reason(profile: EntityProfile) -> Reason:
    """Return what the slices of an entity are."""
    slices = profile.group.slices
    if not profile.group.is_dated:
        return Reason.of(Code.UNDATED, slices=len(slices))
    dates = [f"{each.date:%Y-%m-%d}" for each in slices]
    shown = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    code = Code.FOLDER_A_DAY if profile.group.is_folder_a_slice else Code.DATED
    return Reason.of(code, slices=len(slices), dates=shown)


def _columns(profile: EntityProfile) -> Iterator[str]:
    has_types = any(map(profile.is_declared, profile.types))
    if has_types:
        files, looked_at = profile.group.files, profile.looked_at
        is_sample = looked_at < files
        code = Code.SAMPLE_FITS if is_sample else Code.ALL_FIT
        yield _commented("columns:", Reason.of(code, files=looked_at, all=files).text)
    yield from (f"  {line}" if has_types else line for line in _column_lines(profile))


def _column_lines(profile: EntityProfile) -> Iterator[str]:
    for name, guess in profile.types.items():
        if profile.is_declared(name):
            why = None if guess.reason.code is Code.ALL_FIT else guess.reason.text
            yield _commented(f"{scalar_text(name)}: {_flow(profile.declared(guess))}", why)
        elif guess.reason.code in _COMMENTED_TEXTS:
            yield f"# {_one_line(name)} stays {_one_line(guess.reason.text)}"
        elif guess.reason.code is Code.NESTED:
            yield f"# {_one_line(name)} is {_one_line(guess.reason.text)}"


def _questions(profile: Profile) -> Iterator[str]:
    if profile.questions:
        yield ""
        yield "# Open questions:"
    for each in profile.questions:
        yield f"# - {each.entity}: {_one_line(question_text(each.reason))}"
    if profile.further:
        yield f"# … and {profile.further} more"


def _commented(text: str, comment: str | None) -> str:
    return text if comment is None else f"{text}   # {_one_line(comment)}"


def _one_line(text: str) -> str:
    """Return a text for a comment: values of files must not end it."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _place(place: str, folder: Path) -> str:
    local = None if is_stored(place) else local_path(place)
    if local is not None and local.is_relative_to(folder):
        place = local.relative_to(folder).as_posix()
    return scalar_text(place.replace("$", "\\$"))


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{scalar_text(name)}: {_flow(each)}' for name, each in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return scalar_text(str(value))


_BASIC = 0xFFFF
"""The last character that an escape of four digits can name."""


def scalar_text(text: str) -> str:
    r"""Return a text as YAML reads it.

    Example:
        >>> scalar_text("customers"), scalar_text("on"), scalar_text("a, b"), scalar_text("\t")
        ('customers', '"on"', '"a, b"', '"\\t"')
    """
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _RESERVED and not _NUMBER.fullmatch(text)
    if is_plain:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    # YAML takes no control characters but as escapes; JSON escapes the first 32 alone.
    escaped = (each if each.isprintable() or ord(each) > _BASIC else f"\\u{ord(each):04x}" for each in quoted)
    return "".join(escaped)
