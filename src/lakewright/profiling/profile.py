"""What the files of some places show: their entities, and what only a person knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakewright.profiling.entity import EntityProfile, Look, merged_looks, profile_entity
from lakewright.profiling.grouping import group_files
from lakewright.profiling.places import Place, Skipped
from lakewright.profiling.reason import Code, Reason
from lakewright.profiling.types import TypeGuess
from lakewright.profiling.words import QUESTIONS

_MOST_QUESTIONS = 10
_MOST_ENTITIES = 200
_ORDER = tuple(QUESTIONS)


@dataclass(frozen=True)
class Profile:
    """What the files of some places show.

    Attributes:
        entities: The entities.
        skipped: The files that are left out.
        questions: What to decide, the most important first; at most ten.
        further: How many more questions there are.
    """

    entities: tuple[EntityProfile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    questions: tuple[Question, ...] = ()
    further: int = 0


def profile_places(places: Sequence[Place]) -> Profile:
    """Return what the files of places show."""
    entities: list[EntityProfile] = []
    skipped = [each for place in places for each in place.skipped]
    for place in places:
        groups = group_files(place)
        skipped += (Skipped(each.slices[0].name, Reason(Code.TOO_MANY)) for each in groups[_MOST_ENTITIES:])
        looks = [Look.of(group, place) for group in groups[:_MOST_ENTITIES]]
        for look in merged_looks(looks, place):
            skipped += look.skipped
            if any(look.tables):
                entities.append(profile_entity(look))
    named = tuple(_with_own_names(entities))
    asked = sorted(
        (Question(each.name, reason) for each in named for reason in _open_questions(each)),
        key=lambda question: _ORDER.index(question.reason.code),
    )
    further = max(0, len(asked) - _MOST_QUESTIONS)
    return Profile(named, tuple(skipped), tuple(asked[:_MOST_QUESTIONS]), further)


def _with_own_names(entities: Sequence[EntityProfile]) -> Iterator[EntityProfile]:
    """Yield the entities, each with a name of its own."""
    taken: set[str] = set()
    for each in entities:
        name, number = each.name, 2
        while name in taken:
            name, number = f"{each.name}_{number}", number + 1
        taken.add(name)
        yield each if name == each.name else replace(each, group=replace(each.group, name=name))


@dataclass(frozen=True, slots=True)
class Question:
    """What the files do not show, about an entity."""

    entity: str
    reason: Reason

    def as_json(self) -> dict[str, Any]:
        """Return the question as `-o json` prints it."""
        return {"entity": self.entity, **self.reason.as_json()}


def _open_questions(profile: EntityProfile) -> Iterator[Reason]:
    """Yield what only a person can decide about an entity."""
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
