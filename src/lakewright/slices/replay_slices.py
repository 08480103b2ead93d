"""Applying known slices again, in order, each with the processing time that it was given at first.

The table is another one than the entity's: it is built beside it. Each slice is one commit there, which
carries its item; the table's log shows how far an earlier attempt came, so that the next one continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError, RetryableError, TargetError
from lakewright.lake.commit import Token, read_commits, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import observe_table
from lakewright.manifest.watermark import Watermark
from lakewright.plan.permissions import Permissions
from lakewright.slices.applied import slices_in
from lakewright.slices.attempt import STRATEGIES
from lakewright.slices.discover import find_slice
from lakewright.slices.read import read_slice
from lakewright.strategies.bad_rows import check_number
from lakewright.strategies.delete_inference import lower_bounds
from lakewright.strategies.failures import translate_error
from lakewright.strategies.slice_load import LoadRequest, SliceLoad, prepare_load

if TYPE_CHECKING:
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity, Strategy

__all__ = ["KnownSlice", "replay_slices"]

_PERMISSIONS = Permissions(allow_data_loss=True, allow_late=True)
"""What slices that were processed once were permitted, if they needed it."""


@dataclass(frozen=True, slots=True)
class KnownSlice:
    """A slice that was processed.

    Attributes:
        item_id: Its item.
        name: Its name.
        fingerprint: Its fingerprint when it was processed; bronze must still hold that content.
        at: The processing time that it was given.
        strategy: The strategy by which it is applied.
        is_late: Whether a later slice had been processed before it.
    """

    item_id: str
    name: str
    fingerprint: Mapping[str, Any]
    at: datetime
    strategy: Strategy
    is_late: bool = False


def replay_slices(
    context: ProcessingContext,
    entity: Entity,
    slices: Sequence[KnownSlice],
    *,
    app: str,
    watermarks: Mapping[str, Watermark],
    check: Callable[[], None],
) -> tuple[Mapping[str, Any], ...]:
    """Apply slices to a table; return for each what its commit says: fingerprint, watermarks, metrics.

    Args:
        context: The context of the processing.
        entity: The entity, with the place of the table that is built.
        slices: The slices in the order in which they are applied.
        app: The application id of the commits, which no other replay to this table has.
        watermarks: Column to its watermark before the first of the slices.
        check: Raises an error if the replay must not go on.

    Raises:
        LakewrightError: A slice cannot be applied; the table holds those before it.
    """
    replay = _Replay(context, entity, app, check, dict(watermarks))
    done = _done_before(context, entity, app)
    return tuple(replay.take(number, known, done.get(number)) for number, known in enumerate(slices, 1))


def _done_before(context: ProcessingContext, entity: Entity, app: str) -> dict[int, Mapping[str, Any]]:
    """Return what an earlier attempt has applied, by the slices' numbers."""
    silver = entity.places(context.lake.settings).silver
    if not observe_table(context.lake, silver).exists:
        return {}
    found: dict[int, Mapping[str, Any]] = {}
    for commit in read_commits(context.lake, silver):
        for applied in slices_in(commit, app):
            found[applied.number] = applied.content
            # Slices before it that changed nothing have no commit of their own.
            found |= {each["number"]: each for each in applied.content.get("unwritten", ())}
    return found


@dataclass(slots=True)
class _Replay:
    """A replay on its way.

    Attributes:
        last: Column to its watermark after the slices so far.
        unwritten: What is to be said of slices since the last commit, which changed nothing.
    """

    context: ProcessingContext
    entity: Entity
    app: str
    check: Callable[[], None]
    last: dict[str, Watermark]
    unwritten: list[Mapping[str, Any]] = field(default_factory=list)

    def take(self, number: int, known: KnownSlice, done: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Apply one slice, unless an earlier attempt has; return what its commit says."""
        content = done
        if content is None:
            self.check()
            content, is_written = self._apply(number, known)
            self.unwritten = [] if is_written else [*self.unwritten, content]
        for column, mark in content["watermarks"].items():
            found = Watermark.from_json(mark)
            if column not in self.last or found.is_after(self.last[column]):
                self.last[column] = found
        return content

    def _apply(self, number: int, known: KnownSlice) -> tuple[Mapping[str, Any], bool]:
        """Apply one slice; return what its commit says, and whether there is a commit."""
        begun = time.monotonic()
        content: dict[str, Any] = {
            "item": known.item_id,
            "slice": known.name,
            "number": number,
            "strategy": known.strategy.value,
            "processingTime": known.at.isoformat(),
            "fingerprint": dict(known.fingerprint),
        }
        reach_failpoint("before_replay")
        try:
            load = self._load(number, known, content)
            summary = STRATEGIES[known.strategy](load)
        except Exception as error:
            raise _failed(self.entity, known, error) from error
        reach_failpoint("after_replay")
        marks = {column: mark.as_json() for column, mark in load.statistics.watermarks.items()}
        metrics = replace(summary, seconds=round(time.monotonic() - begun, 3)).as_json()
        return {**content, "watermarks": marks, "metrics": metrics}, summary.delta_version is not None

    def _load(self, number: int, known: KnownSlice, content: Mapping[str, Any]) -> SliceLoad:
        """Return a slice ready for its strategy.

        Raises:
            TargetError: It is gone, or cannot be applied.
        """
        lake, entity = self.context.lake, self.entity
        slice_ = find_slice(entity.places(lake.settings).bronze, known.name, lake)
        if slice_ is None:
            raise TargetError("it is gone from bronze")
        carried = {**content, "run": self.context.holder.run_id, "record": f"{self.app}/{number}"}
        request = LoadRequest(
            slice_name=known.name,
            slice_size=slice_.size,
            strategy=known.strategy,
            at=known.at,
            token=Token(self.app, number, {**carried, "unwritten": list(self.unwritten)}),
            check_lock=self.check,
            holder=str(self.context.holder),
            lower_bounds=lower_bounds(entity, self.last, lambda: known.at),
            permissions=_PERMISSIONS,
            is_late=known.is_late,
        )
        session = strict_session(lake)
        load = prepare_load(lake, session, entity, read_slice(session, slice_, entity), request)
        check_number(load.bad_rows, entity.settings.max_bad_rows)
        return load


def _failed(entity: Entity, known: KnownSlice, error: Exception) -> LakewrightError:
    """Return the error of a slice that cannot be applied again."""
    ours = translate_error(error, entity, known.name)
    if isinstance(ours, RetryableError):
        return ours
    message = f"the slice {known.name} of {entity.name} cannot be applied again: {ours.message}"
    return type(ours)(message, remedy=ours.remedy, details=ours.details)
