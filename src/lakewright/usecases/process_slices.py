"""Process the pending slices of one entity without a job, or show what one slice would change."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from lakewright.app import App
from lakewright.errors import LakewrightError, UsageError
from lakewright.lake.commit import strict_session
from lakewright.lake.tracing import span
from lakewright.manifest.item import Item
from lakewright.notebook import html_table, json_value
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.run.execution import Interruption
from lakewright.slices.column_time import BEFORE_ALL, latest_in_slice, time_without_rows
from lakewright.slices.context import ProcessingContext, ProcessingOptions, strategy_of
from lakewright.slices.discovery import find_slice, item_id, settle_of
from lakewright.slices.other_runs import (
    OtherRun,
    declared_time,
    processing_jobs,
    run_taking,
)
from lakewright.slices.processing import process_pending
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.rehearsal import Rehearsal, rehearsed
from lakewright.slices.result import ProcessResult
from lakewright.slices.slice_commit import slice_request
from lakewright.slices.slice_replay import unfit
from lakewright.slices.time_check import planned_time_error, times_error
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.expression import names_in, parse_template
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.targets.context import Context
from lakewright.targets.entity.maintenance import maintain_after_slices
from lakewright.targets.entity.work import processing_context
from lakewright.targets.target import Target
from lakewright.transform.system_columns import SystemColumns
from lakewright.usecases.look_back import CHANGE_COLUMNS, PastTable, RowChange, changes_of
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.due.facts import SliceTime
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.models.job import Job


log = logging.getLogger(__name__)


def process_slices(
    app: App,
    entity: str,
    slice: str | None = None,
    *,
    strategy: str | None = None,
    processing_time: str | None = None,
    is_time_lenient: bool = False,
    permissions: Permissions = NO_PERMISSIONS,
    wait: bool = False,
    interruption: Interruption | None = None,
) -> ProcessResult:
    """Process an entity's pending slices, or one of them, then maintain the table if so configured.

    Args:
        app: The project.
        entity: Name or id of the entity.
        slice: Name of the slice; without it, every slice that is ready.
        strategy: `full`, `merge` or `historic`, used instead of the entity's own.
        processing_time: ISO 8601 text, or an expression over the slice. By default it is the one that all
            jobs declare for the entity's slices, or the current time.
        is_time_lenient: Whether a text that is no time is only warned of, and the current time is used.
        permissions: Actions to allow that are refused by default.
        wait: Wait for slices that another run is processing.
        interruption: Checked between slices; shows whether to stop.

    Raises:
        SpecError, UsageError: There is no such entity, slice or strategy, the entity is disabled, or the
            processing time is no time.
        BackdatedError: The processing time is not later than the table's.
        SparkUnavailable: The Spark session of this process has no Delta Lake; nothing was claimed.
    """
    found = app.project.entity(entity)
    if not found.enabled:
        raise UsageError(
            f"the entity {found.name!r} is disabled",
            remedy="Set enabled: true where it, or its connection, is declared.",
        )
    app.check_session()
    app.make_store()
    target = app.context(interruption=interruption)
    context, times = _processing(
        app,
        target,
        found,
        processing_time,
        strategy=strategy_of(strategy),
        is_time_lenient=is_time_lenient,
        permissions=permissions,
        wait=wait,
    )
    if times.is_now:
        log.warning("%s: %s", found.name, times.note)
    with (
        app.reported_command("process", found) as end,
        span(f"process {found.name}", entity=found.name, run=app.run_id),
    ):
        result = process_pending(context, found, slice=slice)
        end.status, end.error = result.status, next(iter(result.faults), None)
        end.metrics = {"slices": [one.as_json() for one in result.slices]}
    if times.note is not None and result.slices:
        result = replace(result, notes=(times.note, *result.notes))
    if result.slices and result.error is None and not result.is_stopped:
        maintain_after_slices(target, found)
    return result


def _processing(
    app: App, context: Context, entity: Entity, time: str | None, **options: Any
) -> tuple[ProcessingContext, ProcessTimes]:
    """Return the context in which slices of an entity are processed, and their processing times."""
    times = process_times(app, entity, time)
    given = ProcessingOptions(
        processing_time=times.text, scope=times.scope, settle=settle_of(app.project.config), **options
    )
    return processing_context(context, entity, given), times


_OF_CLONE = ("delta_version", "seconds", "is_first")
"""Metrics that say something about the clone only."""


@dataclass(frozen=True, slots=True, repr=False)
class RehearsedSlice(Rehearsal):
    """What processing a slice would do to its entity's table; nothing was written.

    Attributes:
        counts: Number of records by change; None if records were not compared.
        rows: Some of the records that change, by key.
    """

    counts: Mapping[str, int] | None
    rows: tuple[RowChange, ...]

    @property
    def metrics(self) -> dict[str, Any] | None:
        """The counts of the slice; None if it can't be applied."""
        if self.summary is None:
            return None
        found = {name: value for name, value in asdict(self.summary).items() if name not in _OF_CLONE}
        return {**found, "strategy": self.strategy}

    @property
    def deletes_text(self) -> str | None:
        """The deletes that it would infer, and what the brake says, as a sentence."""
        return None if self.deletes is None else self.deletes.text(self.slice, Strategy(self.strategy))

    def __repr__(self) -> str:
        counts = " ".join(f"{name}={count}" for name, count in (self.counts or {}).items() if count)
        ended = counts if self.error is None else f"fails: {self.error.message}"
        return f"<RehearsedSlice {self.entity}/{self.slice} {self.strategy} {ended or 'changes nothing'}>"

    def _repr_html_(self) -> str:
        deletes = () if self.deletes_text is None else (self.deletes_text,)
        notes = (*self.notes, *self.warnings, *deletes, "Nothing was written.")
        return html_table(repr(self)[1:-1], CHANGE_COLUMNS, (row.shown for row in self.rows), notes)

    def as_json(self) -> dict[str, Any]:
        """Return the document that `process --rehearse` prints."""
        deletes = self.deletes
        names = ("entity", "slice", "item_id", "state", "strategy", "version", "metrics", "counts")
        return {
            **{name: json_value(getattr(self, name)) for name in (*names, "notes", "warnings")},
            "processing_time": self.processing_time.isoformat(),
            "rows": [row.as_json() for row in self.rows],
            "deletes": None
            if deletes is None
            else {
                "inferred": deletes.inferred,
                "expected": deletes.expected,
                "refused": deletes.is_refused,
                "text": self.deletes_text,
            },
            "error": None if self.error is None else self.error.as_fault().as_json(),
        }


def rehearse_slice(
    app: App,
    entity: str,
    slice: str,
    *,
    strategy: str | None = None,
    processing_time: str | None = None,
    permissions: Permissions = NO_PERMISSIONS,
    limit: int = 20,
    interruption: Interruption | None = None,
) -> RehearsedSlice:
    """Return what processing a slice would do: it is applied to a shallow clone, which is then removed.

    Nothing is written to silver, the manifest, watermarks or bronze. A slice that is processed, skipped or
    failed can be rehearsed too; it is applied to the table as it is now.

    Args:
        app: The project.
        entity: Name or id of the entity.
        slice: Name of the slice.
        strategy: `full`, `merge` or `historic`, used instead of the entity's own.
        processing_time: ISO 8601 text, or an expression over the slice. By default it is the one that all
            jobs declare for the entity's slices, or the current time.
        permissions: Actions to allow that are refused by default.
        limit: The largest number of records to return.
        interruption: Shows whether to stop.

    Raises:
        SpecError: There is no such entity.
        UsageError: There is no such slice, or the processing time is no time.
        LeaseHeld: Another process is rehearsing a slice of the entity.
    """
    found = app.project.entity(entity)
    app.check_session()
    context, times = _processing(
        app,
        app.context(interruption=interruption),
        found,
        processing_time,
        strategy=strategy_of(strategy),
        permissions=permissions,
    )
    with (
        span(f"rehearse {found.name}", entity=found.name, run=app.run_id),
        rehearsed(context, found, slice) as (rehearsal, side),
    ):
        counts, rows, notes = _compared(app, found, rehearsal, side, limit)
        notes = (*filter(None, (times.note,)), *rehearsal.notes, *notes)
        known = {each.name: getattr(rehearsal, each.name) for each in fields(rehearsal)}
        return RehearsedSlice(**{**known, "notes": notes}, counts=counts, rows=rows)


def _compared(
    app: App, entity: Entity, rehearsal: Rehearsal, side: Entity, limit: int
) -> tuple[Mapping[str, int] | None, tuple[RowChange, ...], tuple[str, ...]]:
    """Return the number of records by change, some of them, and why they were not compared."""
    if rehearsal.summary is None:
        return None, (), ()
    if not entity.business_keys:
        return None, (), ("the entity has no business key, so records before and after can't be compared",)
    version = rehearsal.summary.delta_version
    if version is None:
        return {}, (), ()
    system = SystemColumns(app.project.lake.systemfield_prefix, entity.destination)
    table = PastTable(app, side, system, app.lake.new_session(), ())
    counts, rows = changes_of(table, version, limit=limit)
    return counts, rows, ()


class _Timing(NamedTuple):
    """What gives slices their processing times: the run that takes them."""

    context: ProcessingContext
    entity: Entity
    times: ProcessingTimes


def _timing(app: App, entity: Entity, run: OtherRun | None) -> _Timing | None:
    """Return what gives times to slices that a run takes, or that no job takes; None if it is faulty."""
    with suppress(LakewrightError, ValueError):
        if run is None:
            context, _ = _processing(app, app.context(), entity, None)
            return _Timing(context, entity, context.times(entity))
        from lakewright.targets.entity.target import EntityTarget  # not needed where nothing is new

        job, given = app.project.job(run.job), dict(run.parameters)
        known = {each.name: each.parse(given[each.name]) for each in job.parameters if each.name in given}
        others = [each for each in job.parameters if each.name not in (*given, *run.unknown)]
        (defaults,) = expand_arguments(others, (), app.project.job_scope(job))
        scope = app.project.job_scope(job, {**defaults, **known})
        workspace = Workspace(app.project.within(scope), scope, app.lake)
        target = Target.named(workspace, run.target)
        if isinstance(target, EntityTarget):
            work = target.work(app.context(workspace))
            return _Timing(work.processing, work.entity, work.processing.times(work.entity))
    return None


def declared_slice_time(app: App, entity: Entity, slice_name: str) -> datetime | None:
    """Return the processing time that is declared for a slice where it is processed; None without one.

    Raises:
        LakewrightError: It is the latest value of a column, which can't be read.
    """
    found = _timing(app, entity, run_taking(app.project, entity.called, slice_name))
    if found is None:
        return None
    times = found.times
    if times.column is not None:
        return _column_time(app, found.entity, slice_name, times.column)
    with suppress(LakewrightError, ValueError):
        return times.at(slice_name)
    return None


def _column_time(app: App, entity: Entity, slice_name: str, column: str) -> datetime | None:
    """Return the time that a column of a slice gives it; None if the slice is gone."""
    context = processing_context(app.context(), entity, ProcessingOptions())
    slice_ = find_slice(context.chain(entity).folder, slice_name, app.lake)
    if slice_ is None:
        return None
    request = slice_request(context, entity, slice_, BEFORE_ALL, is_late=False)
    try:
        session = strict_session(app.lake)
        latest = latest_in_slice(app.lake, session, entity, slice_, column, request=request)
    except LakewrightError as error:
        raise unfit(app.lake, entity, slice_.name, slice_.fingerprint, error) from error
    return latest or time_without_rows(context.chain(entity))


@dataclass(frozen=True, slots=True)
class PlannedTimes:
    """The processing times of slices that may be processed, as the runs that take them declare these.

    Attributes:
        runs: The runs that take the slices, by their names; None for a slice that no job takes.
        items: What the manifest has of slices, by their names.
    """

    app: App
    entity: Entity
    runs: Mapping[str, OtherRun | None]
    items: Mapping[str, Item]
    _known: dict[OtherRun | None, _Timing | None] = field(default_factory=dict)

    def of(self, names: Iterable[str]) -> dict[str, SliceTime]:
        """Return what gives slices their times; slices of runs whose declaration is faulty are left out."""
        found = {}
        for name in names:
            if (timing := self._timing(self.runs[name])) is not None:
                found[name] = timing.times.planned(name, self.items.get(name))
        return found

    def refusal(self, names: Sequence[str]) -> tuple[Sequence[str], LakewrightError] | None:
        """Return the error by which a run would process none of its slices, as a time is wrong, or None.

        The slices before it come first: they, and those that follow them.

        A time is wrong if the expression has no value for a slice, or one that is not later than that of
        the slice before it in the run, or than the versions of the table. It is known from the declaration,
        the slices' names and the table's log.

        Args:
            names: The slices that the next runs would process, in order, without those that these refuse as
                late.
        """
        groups: dict[OtherRun | None, list[str]] = {}
        for name in names:
            groups.setdefault(self.runs[name], []).append(name)
        for run, taken in groups.items():
            timing = None if run is not None and run.unknown else self._timing(run)
            if timing is None or timing.times.text is None:
                continue
            context, entity = timing.context, timing.entity
            slices = entity.places(self.app.lake.settings).slices
            items = [self.items.get(name) or Item(item_id(slices.place(name))) for name in taken]
            error: LakewrightError | None
            try:
                error = times_error(context, entity, items, frozenset())
                # What later runs find in the table is not known yet.
                if error is None and taken[0] == names[0]:
                    error = planned_time_error(context, entity, items[:1])
            except LakewrightError:  # `validate` reports it
                continue
            if error is not None:
                return names[names.index(taken[0]) :], error
        return None

    def _timing(self, run: OtherRun | None) -> _Timing | None:
        if run not in self._known:
            self._known[run] = _timing(self.app, self.entity, run)
        return self._known[run]


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """The processing times that slices get.

    Attributes:
        text: ISO 8601, or an expression over the slice; None for the time of now.
        scope: Names that the expression may use.
        note: Which times these are, if the caller gave none and a job declares some.
        is_now: Whether a job declares times that these are not.
    """

    text: str | None
    scope: Scope
    note: str | None = None
    is_now: bool = False


def process_times(app: App, entity: Entity, given: str | None) -> ProcessTimes:
    """Return the times that are given, or those that all jobs declare for an entity's slices.

    A time that depends on a job's parameters, or that not all jobs declare, is not used: then it is that of
    now, and the note says so.
    """
    scope = app.workspace.scope
    declared = [(job, declared_time(each)) for job, _, each in processing_jobs(app.project, entity.called)]
    texts = list(dict.fromkeys(text for _, text in declared if text is not None))
    if given is not None or not texts:
        return ProcessTimes(given or entity.settings.slice_time, scope)
    jobs = [job for job, text in declared if text is not None]
    named = f"the job {jobs[0].name} declares {texts[0]!r}"
    if len(texts) > 1 or len(jobs) < len(declared):
        why = f"{named}, and not all jobs that process {entity.called} declare the same"
    elif any(_needs_parameters(job, texts[0]) for job in jobs):
        why = f"{named}, which depends on its parameters"
    else:
        note = f"the processing times are those that the job {jobs[0].name} declares: {texts[0]}"
        return ProcessTimes(texts[0], app.project.job_scope(jobs[0]), note)
    return ProcessTimes(None, scope, f"the processing time is that of now: {why}", is_now=True)


def _needs_parameters(job: Job, text: str) -> bool:
    try:
        used = names_in(parse_template(text)) if "$" in text else frozenset()
    except LakewrightError:  # `validate` reports it
        return True
    return any(each.name in used for each in job.parameters)
