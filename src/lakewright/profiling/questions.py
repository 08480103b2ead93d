"""What the files of an entity do not show, and only a person knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lakewright.profiling.entity import EntityProfile
from lakewright.profiling.reason import Code, Reason
from lakewright.profiling.types import TypeGuess

__all__ = ["Question", "open_questions"]

_ORDER = (
    Code.DOUBLED_NAME,
    Code.NAMELESS,
    Code.NO_TYPE,
    Code.FAULTY_FILE,
    Code.OTHER_DATES,
    Code.LOST_ROWS,
    Code.NO_KEY,
    Code.NOT_LOOKED_INTO,
    Code.UNSURE_KEY,
    Code.OVERLAP,
    Code.NOT_COMPARED,
    Code.RAGGED,
    Code.DAY_OR_MONTH,
    Code.DECIMAL_COMMA,
    Code.NO_HEADER,
    Code.ENCODING,
    Code.OTHER_COLUMNS,
    Code.ONE_SLICE,
    Code.NO_DATES,
    Code.MIXED,
)
"""What is asked, the most important first."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the files do not show, about an entity."""

    entity: str
    reason: Reason

    @property
    def rank(self) -> int:
        """Its place among others, the most important first."""
        return _ORDER.index(self.reason.code)

    def as_json(self) -> dict[str, Any]:
        """Return the question as `-o json` prints it."""
        return {"entity": self.entity, **self.reason.as_json()}


def open_questions(profile: EntityProfile) -> Iterator[Question]:
    """Yield what only a person can decide about an entity."""
    yield from (Question(profile.name, reason) for reason in _reasons(profile))


def _reasons(profile: EntityProfile) -> Iterator[Reason]:
    if profile.why_strategy.code is Code.LOST_ROWS:
        yield profile.why_strategy
    elif not profile.key.columns:
        yield profile.key.reason
    if profile.key.columns and not profile.key.is_sure:
        yield Reason.of(Code.UNSURE_KEY, columns=[*profile.key.columns], **profile.key.reason.given)
    if profile.key.columns and profile.why_load.code in _ORDER:
        yield profile.why_load
    if profile.why_strategy.code is Code.NO_DATES:
        yield profile.why_strategy
    yield from (each for each in profile.findings if each.code in _ORDER)
    by_code: dict[Code, list[tuple[str, TypeGuess]]] = {}
    for name, guess in profile.types.items():
        by_code.setdefault(guess.reason.code, []).append((name, guess))
    for code in (Code.DAY_OR_MONTH, Code.DECIMAL_COMMA, Code.MIXED):
        if found := by_code.get(code):
            example = found[0][1].reason.given.get("example")
            yield Reason.of(code, columns=[name for name, _ in found], example=example)
