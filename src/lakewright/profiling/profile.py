"""What the files of some places show: their entities, and what only a person knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lakewright.profiling.entity import EntityProfile, profile_entity
from lakewright.profiling.grouping import group_files
from lakewright.profiling.look import Look, merged_looks
from lakewright.profiling.places import Place, Skipped
from lakewright.profiling.questions import Question, open_questions
from lakewright.profiling.reason import Code, Reason

__all__ = ["Profile", "profile_places"]

_MOST_QUESTIONS = 10
_MOST_ENTITIES = 200


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
        (question for each in named for question in open_questions(each)),
        key=lambda question: question.rank,
    )
    return Profile(
        named, tuple(skipped), tuple(asked[:_MOST_QUESTIONS]), max(0, len(asked) - _MOST_QUESTIONS)
    )


def _with_own_names(entities: Sequence[EntityProfile]) -> Iterator[EntityProfile]:
    """Yield the entities, each with a name of its own."""
    taken: set[str] = set()
    for each in entities:
        name, number = each.name, 2
        while name in taken:
            name, number = f"{each.name}_{number}", number + 1
        taken.add(name)
        yield each if name == each.name else replace(each, group=replace(each.group, name=name))
