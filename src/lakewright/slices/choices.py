"""What to type about slices that a person must decide about: one decision, then `apply`.

What each choice does is described where a plan offers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.due.facts import Effect, Subject
from lakewright.due.plan import Code, choices_of
from lakewright.due.slices import CHANGED, LATE
from lakewright.due.words import advice
from lakewright.errors import LateSliceError
from lakewright.spec.models.entity import Strategy

if TYPE_CHECKING:
    from lakewright.slices.processed import Place
    from lakewright.spec.models.entity import Entity

__all__ = ["changed_advice", "effect_of", "late_advice", "late_error"]


def effect_of(entity: Entity, strategy: Strategy) -> Effect:
    """Return how an entity's slices make its table: whether it makes a difference in which order they come.

    Without partitions, only the last slice of `full` leaves rows. With `sequence_by`, a merge keeps the newer
    rows, but not the absence of records that later slices lack.
    """
    settings = entity.settings
    if strategy is Strategy.FULL:
        return Effect.IN_ORDER if entity.partition_columns else Effect.LAST
    is_sorted = strategy is Strategy.MERGE and settings.sequence_by is not None
    return Effect.ANY_ORDER if is_sorted and not settings.asserts_absence else Effect.IN_ORDER


def late_error(entity: Entity, strategy: Strategy, name: str, last: Place | None) -> LateSliceError:
    """Return the error of a late slice; `last` is the place of the last processed one, if it is known."""
    after = None if last is None else last[-1][-1]
    return LateSliceError(
        f"the slice {name} is older than {after or 'another one'}, which is already processed",
        remedy=late_advice(entity, strategy, name),
        details={"slice": name, "after": after},
    )


def late_advice(entity: Entity, strategy: Strategy, name: str) -> str:
    """Return what to type about a late slice."""
    is_asked = effect_of(entity, strategy) is Effect.IN_ORDER
    return advice(choices_of(Subject(entity.called, name), "", LATE if is_asked else (), Code.LATE_SLICE))


def changed_advice(entity: Entity, name: str) -> str:
    """Return what to type about a slice whose files have changed since it was processed."""
    verbs = () if entity.settings.changed_slices == "requeue" else CHANGED
    return advice(choices_of(Subject(entity.called, name), "", verbs, Code.CHANGED_SLICE))
