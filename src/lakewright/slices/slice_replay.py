"""Applying known slices again, in order, each with the processing time that it was given at first.

The table is another one than the entity's: it is built beside it. Each slice is one commit there, which
carries its item, or many slices are folded into one; the table's log shows how far an earlier attempt came,
so that the next one continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError, TargetError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import Token, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.manifest.lock import command
from lakewright.manifest.payload import MAY_SKIP
from lakewright.manifest.watermarks import Watermark
from lakewright.plan.permissions import Permissions
from lakewright.slices.chain import slices_in
from lakewright.slices.discovery import called_name, find_slice
from lakewright.slices.fold import FEWEST, fitting, one_by_one_reason
from lakewright.slices.past_versions import load_past_before
from lakewright.slices.quarantine import save_bad_rows
from lakewright.slices.result import SliceReport, SliceResult, is_slice_at_fault
from lakewright.slices.slice_commit import commit_slices, load_warnings, slice_error
from lakewright.spec.words import counted, first_of
from lakewright.strategies.bad_rows import rows_text
from lakewright.strategies.delete_inference import lower_bounds
from lakewright.strategies.failures import translate_error
from lakewright.strategies.preparation import BadSlice
from lakewright.strategies.slice_load import LoadRequest, SliceLoad
from lakewright.transform.fault_words import fault_of, fault_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity, Strategy
    from lakewright.strategies.bad_rows import BadRow
    from lakewright.strategies.summary import Summary


UNFIT_SLICE = "unfit_slice"
"""Detail of an error: the name and the fingerprint of the slice that is at fault."""

_PERMISSIONS = Permissions(allow_data_loss=True, allow_late=True, allow_deletes=True)
"""What slices that were processed once were permitted, if they needed it."""


MOST_NAMED = 5


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
        is_new: Whether it was not processed with the content that it has now. It must then have all declared
            columns; others may lack those that were declared since.
    """

    item_id: str
    name: str
    fingerprint: Mapping[str, Any]
    at: datetime
    strategy: Strategy
    is_late: bool = False
    is_new: bool = False


def replay_slices(
    context: ProcessingContext,
    entity: Entity,
    slices: Sequence[KnownSlice],
    *,
    app: str,
    watermarks: Mapping[str, Watermark],
    check: Callable[[], None],
    has_past: bool = False,
    session: SparkSession | None = None,
) -> tuple[Mapping[str, Any], ...]:
    """Apply slices to a table; return for each what its commit says: fingerprint, watermarks, metrics.

    Args:
        context: The context of the processing.
        entity: The entity, with the place of the table that is built.
        slices: The slices in the order in which they are applied.
        app: The application id of the commits, which no other replay to this table has.
        watermarks: Column to its watermark before the first of the slices.
        check: Raises an error if the replay must not go on.
        has_past: Whether the entity's past versions stand before the first of the slices.
        session: A strict session for all slices; by default a new one.

    Raises:
        LakewrightError: A slice cannot be applied; the table holds those before it.
    """
    replay = _Replay(context, entity, app, check, dict(watermarks), _session=session)
    done = _done_before(context, entity, app)
    if has_past and slices and not done:
        replay.load_past(slices[0])
    taken: list[Mapping[str, Any]] = []
    while len(taken) < len(slices):
        number = len(taken) + 1
        rest = slices[len(taken) :]
        taken += replay.fold(number, rest, done) or (replay.take(number, rest[0], done.get(number)),)
    replay.warn_of_lacking()
    return tuple(taken)


def _done_before(context: ProcessingContext, entity: Entity, app: str) -> dict[int, Mapping[str, Any]]:
    """Return what an earlier attempt has applied, by the slices' numbers."""
    found: dict[int, Mapping[str, Any]] = {}
    for commit in context.chain(entity).log:
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
        may_fold: Whether several slices may be applied in one commit.
        lacking: Declared column to the names of the slices that lack it.
    """

    context: ProcessingContext
    entity: Entity
    app: str
    check: Callable[[], None]
    last: dict[str, Watermark]
    unwritten: list[Mapping[str, Any]] = field(default_factory=list)
    may_fold: bool = True
    lacking: dict[str, dict[str, None]] = field(default_factory=dict)
    _session: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        """The session of all slices, started with the first: a new one for each costs as much as a query."""
        if self._session is None:
            self._session = strict_session(self.context.lake)
        return self._session

    def load_past(self, first: KnownSlice) -> None:
        """Load what stands before the first slice.

        Raises:
            TargetError: It can't be loaded, or the first slice can't be read.
        """
        try:
            slice_, request = self._request(1, first)
            token = replace(request.token, content={**request.token.content, **self._carried(1)})
            request = replace(request, token=token)
            load_past_before(self.context, self.session, self.entity, slice_, request)
        except Exception as error:
            raise translate_error(error, self.entity, first.name) from error

    def fold(
        self, number: int, rest: Sequence[KnownSlice], done: Mapping[int, Any]
    ) -> tuple[Mapping[str, Any], ...]:
        """Apply the next slices in one commit, if they can be folded; return what it says of each.

        If that fails, all slices are applied one by one, and the one that is at fault fails.

        Args:
            number: The number of the next slice.
            rest: The slices that are not applied yet, in order.
            done: What an earlier attempt has applied, by the slices' numbers.
        """
        if not self.may_fold or one_by_one_reason(self.context, self.entity) is not None:
            return ()
        most = max(fitting(known.fingerprint for known in rest), 1)
        numbered = [(each, known) for each, known in enumerate(rest[:most], number)]
        free = takewhile(lambda pair: pair[0] not in done and self._is_usual(pair[1]), numbered)
        known = [each for _, each in free]
        if len(known) < FEWEST:
            return ()
        self.check()
        try:
            applied = self._commit(number, known)
        except Exception as error:
            ours = _failed(self.context, self.entity, known[0], _cause(error))
            if not isinstance(ours, TargetError):
                raise ours from error
            self.may_fold = False
            of = f"{known[error.position].name}: " if isinstance(error, BadSlice) else ""
            self.context.warn(f"{self.entity.name}: the slices are applied one by one: {of}{_cause(error)}")
            return ()
        return self._taken(number, known, applied)

    def _is_usual(self, known: KnownSlice) -> bool:
        return not (known.is_late or known.is_new) and known.strategy is self.entity.strategy

    def take(self, number: int, known: KnownSlice, done: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Apply one slice, unless an earlier attempt has; return what its commit says."""
        if done is not None:
            self._advance(done)
            return done
        self.check()
        try:
            applied = self._commit(number, (known,))
        except Exception as error:
            raise _failed(self.context, self.entity, known, error) from error
        (content,) = self._taken(number, (known,), applied)
        return content

    def _advance(self, content: Mapping[str, Any]) -> None:
        """Raise the watermarks to those of a slice."""
        for column, mark in content["watermarks"].items():
            found = Watermark.from_json(mark)
            if column not in self.last or found.is_after(self.last[column]):
                self.last[column] = found

    def _commit(self, number: int, slices: Sequence[KnownSlice]) -> list[tuple[SliceLoad, Summary]]:
        """Apply slices in one commit, or in none if nothing changes."""
        begun, last = time.monotonic(), number + len(slices) - 1
        reach_failpoint("before_replay")
        applied = commit_slices(
            self.context.lake,
            self.session,
            self.entity,
            [self._request(each, known) for each, known in enumerate(slices, number)],
            # What was unwritten before is said once, by the commit.
            token=Token(self.app, last, {**self._carried(last), "unwritten": list(self.unwritten)}),
            check_lock=self.check,
            prepared=self._looked_at,
        )
        seconds = round((time.monotonic() - begun) / len(slices), 3)
        return [(load, replace(summary, seconds=seconds)) for load, summary in applied]

    def _taken(
        self, number: int, slices: Sequence[KnownSlice], applied: Sequence[tuple[SliceLoad, Summary]]
    ) -> tuple[Mapping[str, Any], ...]:
        """Return what the commit of slices says of each."""
        reach_failpoint("after_replay")
        contents = []
        for each, (known, (load, summary)) in enumerate(zip(slices, applied, strict=True), number):
            self._report(known, load, summary)
            contents.append({**self._content(each, known), **load.facts(summary)})
        is_written = any(summary.delta_version is not None for _, summary in applied)
        self.unwritten = [] if is_written else [*self.unwritten, *contents]
        for content in contents:
            self._advance(content)
        return tuple(contents)

    def _carried(self, number: int) -> dict[str, Any]:
        """Return what a commit says besides its slices."""
        return {"run": self.context.holder.run_id, "record": f"{self.app}/{number}"}

    def _report(self, known: KnownSlice, load: SliceLoad, summary: Summary) -> None:
        """Report that a slice was applied; what was reported when it was processed is not repeated."""
        name, context = known.name, self.context
        warnings = tuple(load_warnings(context, self.entity, load, summary)) if known.is_new else ()
        for warning in warnings:
            context.warn(Phrase(f"{self.entity.name}: {name}: ", warning))
        result = SliceResult(name, known.item_id, summary, warnings=warnings)
        context.report(SliceReport(self.entity.called, name, known.item_id, result=result, is_beside=True))

    def _content(self, number: int, known: KnownSlice) -> dict[str, Any]:
        return {
            "item": known.item_id,
            "slice": known.name,
            "number": number,
            "strategy": known.strategy.value,
            "processingTime": known.at.isoformat(),
            "fingerprint": dict(known.fingerprint),
        }

    def _looked_at(self, slice_: Slice, load: SliceLoad) -> SliceLoad:
        """Return a slice after its bad rows were put aside, and the columns that it lacks were noted.

        Raises:
            BadRowsError: There are more bad rows than the entity allows, or no others.
        """
        self._put_aside(slice_, load.bad_rows, load.state, records=load.statistics.records)
        for column in load.prepared.lacking:
            self.lacking.setdefault(column, {})[slice_.name] = None
        return load

    def warn_of_lacking(self) -> None:
        """Say which slices lack columns that are declared now, as they did when they were processed."""
        for column, names in self.lacking.items():
            verb = "lacks" if len(names) == 1 else "lack"
            text = f"{first_of(list(names), MOST_NAMED)} {verb} the configured column {column!r}"
            self.context.warn(
                f"{self.entity.name}: {text}, as when first processed: it is null in these rows"
            )

    def _put_aside(self, slice_: Slice, rows: Sequence[BadRow], table: TableState, *, records: int) -> None:
        """Put the bad rows of a slice beside those of the table.

        Raises:
            BadRowsError: There are more than the entity allows, or no others.
        """
        if self.entity.settings.on_bad_rows != "quarantine":
            return
        lake, entity = self.context.lake, self.entity
        located = save_bad_rows(lake, entity, slice_, rows, table=table, records=records, is_replayed=True)
        if located:
            text = f"{counted(len(located), 'bad row')} {'is' if len(located) == 1 else 'are'} put aside"
            self.context.warn(f"{self.entity.name}: {slice_.name}: {text}: {rows_text(located)}")

    def _request(self, number: int, known: KnownSlice) -> tuple[Slice, LoadRequest]:
        """Return a slice and the request to apply it.

        Raises:
            TargetError: It is gone.
        """
        lake, entity = self.context.lake, self.entity
        slice_ = find_slice(entity.places(lake.settings).slices, known.name, lake)
        if slice_ is None:
            raise TargetError("it is gone from bronze")
        request = LoadRequest(
            slice_name=known.name,
            slice_size=slice_.size,
            strategy=known.strategy,
            at=known.at,
            token=Token(self.app, number, self._content(number, known)),
            check_lock=self.check,
            holder=str(self.context.holder),
            lower_bounds=lower_bounds(entity, self.last, lambda: known.at),
            permissions=self._permissions(known),
            is_late=known.is_late,
            may_lack_columns=not known.is_new,
        )
        return slice_, request

    def _permissions(self, known: KnownSlice) -> Permissions:
        is_permitted = not known.is_new or self.context.options.permissions.allow_deletes
        return replace(_PERMISSIONS, allow_deletes=is_permitted)


def _cause(error: Exception) -> Exception:
    """Return the error of the slice at which a fold ended, or the error itself."""
    return error.error if isinstance(error, BadSlice) and error.error is not None else error


def _failed(
    context: ProcessingContext, entity: Entity, known: KnownSlice, error: Exception
) -> LakewrightError:
    """Return the error of a slice that cannot be applied again: a `TargetError` if it is at fault."""
    ours = slice_error(context, entity, known.name, error)
    if not isinstance(ours, TargetError):
        return ours
    message = f"the slice {known.name} of {entity.name} cannot be applied again: "
    fault = fault_of(ours)
    message += ours.message if fault is None else fault_text(fault, of_earlier_slices=True)
    remedy = ours.remedy
    if ours.details.get(MAY_SKIP):
        skip = command("skip", called_name(entity.called, known.name))
        remedy = Phrase(remedy or "", " To leave it out, type ", skip, ", then ", Command("apply"), ".")
    failed = type(ours)(message, remedy=remedy, details=dict(ours.details))
    return unfit(context.lake, entity, known.name, known.fingerprint, failed)


def unfit(
    lake: Lake, entity: Entity, name: str, fingerprint: Mapping[str, Any], error: LakewrightError
) -> LakewrightError:
    """Return an error that names the slice which is at fault, if one is."""
    if not is_slice_at_fault(lake, entity, error):
        return error
    slice_ = {"slice": name, "fingerprint": dict(fingerprint)}
    return type(error)(error.message, remedy=error.remedy, details={**error.details, UNFIT_SLICE: slice_})
