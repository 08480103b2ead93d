"""What to type about slices that a person must decide about: one decision, then `apply`.

What each choice does is described where a plan offers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.errors import LateSliceError
from lakewright.errors.phrase import Command, Phrase
from lakewright.slices.discover import called_name
from lakewright.spec.models.entity import Strategy

if TYPE_CHECKING:
    from lakewright.slices.processed import Place
    from lakewright.spec.models.entity import Entity

__all__ = ["changed_remedy", "does_order_count", "late_error", "late_remedy"]

_APPLY = Command("apply")


def does_order_count(entity: Entity, strategy: Strategy) -> bool:
    """Return whether it makes a difference to rows that a slice is applied after later ones.

    Without partitions, only the last slice of `full` leaves rows. With `sequence_by`, a merge keeps the newer
    rows, but not the absence of records that later slices lack.
    """
    settings = entity.settings
    if strategy is Strategy.FULL:
        return bool(entity.partition_columns)
    return strategy is not Strategy.MERGE or settings.sequence_by is None or settings.asserts_absence


def late_error(entity: Entity, strategy: Strategy, name: str, last: Place | None) -> LateSliceError:
    """Return the error of a late slice; `last` is the place of the last processed one, if it is known."""
    after = None if last is None else last[-1][-1]
    return LateSliceError(
        f"the slice {name} is older than {after or 'another one'}, which is already processed",
        remedy=late_remedy(entity, strategy, (name,)),
        details={"slice": name, "after": after},
    )


def late_remedy(entity: Entity, strategy: Strategy, names: Sequence[str]) -> Phrase:
    """Return what to type about late slices."""
    if does_order_count(entity, strategy):
        return _decided(entity.called, names, ("place", "end", "skip"))
    return Phrase(_APPLY, " takes it: its place makes no difference.")


def changed_remedy(entity: Entity, names: Sequence[str], *, is_skipped: bool = False) -> Phrase:
    """Return what to type about slices whose files have changed since they were processed or skipped."""
    if entity.settings.changed_slices == "requeue" and not is_skipped:
        return Phrase(_APPLY, " takes the new content.")
    return _decided(entity.called, names, ("take", "keep"))


def _decided(entity: str, names: Sequence[str], choices: Sequence[str]) -> Phrase:
    first, *others = choices
    offered = f"{', '.join(f'`{each}`' for each in (first, *others[:-1]))} or `{others[-1]}`"
    each = "" if len(names) == 1 else " for each"
    typed = Command("decide", called_name(entity, names[0]), first)
    return Phrase(f"Choose {offered}{each}: ", typed, ", then ", _APPLY, ".")
