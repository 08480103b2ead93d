"""The jobs, entities, relations and mappings of a loaded project."""

from __future__ import annotations

import logging
from collections import abc
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from lakewright.api.arguments import Range, checked, checked_methods, count_of, key_text, texts_of, time_text
from lakewright.api.open_project import Opened, process_entity, warn, warned
from lakewright.errors import UsageError
from lakewright.lake.frames import SupportsArrow
from lakewright.manifest.verdict import Verdict
from lakewright.plan.permissions import Permissions
from lakewright.slices.application import application_of
from lakewright.slices.discovery import item_id
from lakewright.slices.landing import LandedSlice
from lakewright.slices.result import ProcessResult
from lakewright.spark.loggers import quiet_pyspark
from lakewright.spec.models import entity as of_entity
from lakewright.spec.models import job as of_job
from lakewright.stores.process import user_name
from lakewright.strategies.summary import Summary
from lakewright.usecases.land_slice import land
from lakewright.usecases.look_back import RecordLife, SliceChanges, record_life, slice_changes
from lakewright.usecases.operate_items import ACTIONS, Operated
from lakewright.usecases.process_slices import RehearsedSlice, rehearse_slice
from lakewright.usecases.reading import AsOf, read_entity, read_mapping, read_relation
from lakewright.usecases.rewinds import Rebuilt, Undone, preview_undo, rebuild_table, undo_slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


log = logging.getLogger("lakewright.run")

NO_REASON = "none given"


@checked_methods
@dataclass(frozen=True, slots=True, repr=False)
class Entity:
    """An entity of a loaded project: a silver table, and the slices in bronze that fill it."""

    declared: of_entity.Entity
    _opened: Opened

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name

    @property
    def strategy(self) -> str:
        """How its slices become rows: `full`, `merge` or `historic`."""
        return self.declared.strategy.value

    @property
    def business_keys(self) -> tuple[str, ...]:
        """The columns that identify a record."""
        return tuple(self.declared.business_keys)

    @property
    def bronze(self) -> str:
        """The folder of its slices: a local path or a URI."""
        return self.declared.places(self._opened.app.project.lake).bronze

    @property
    def silver(self) -> str:
        """Its table: a local path, a URI, or a name in the catalog."""
        address = self.declared.places(self._opened.app.project.lake).silver
        return str(address.location or address.name)

    def read(self, *, as_of: AsOf | None = None, current: bool = False) -> DataFrame:
        """Return the rows of its silver table as a DataFrame of `Project.spark`.

        Args:
            as_of: A version of the Delta table, or a time: a `date`, a `datetime` or ISO 8601 text; without
                an offset in the lake's time zone. At a time, an entity of the strategy Historic has the
                versions of its records that were valid then. Another entity has the rows that its table had
                then, as far as Delta keeps them.
            current: Only rows that are not deleted, and of Historic only the current versions.

        Raises:
            TargetError: It has no table yet, or had none then.
            UsageError: `as_of` is neither a version nor a time.
        """
        return self._opened.read(lambda app: read_entity(app, self.declared.id, as_of=as_of, current=current))

    def land(
        self, frame: DataFrame | SupportsArrow, slice_name: str, *, replace: bool = False
    ) -> LandedSlice:
        """Write a frame to bronze as a slice, in the entity's format; the next run processes it.

        The slice appears at once and as a whole: its files are written beside it and renamed.

        Args:
            frame: A DataFrame of Spark, or a frame of pandas, Polars or another library with Arrow's
                interface. Its missing values are null, and its times without an offset are in the lake's
                time zone. An index of pandas is a column if it has a name.
            slice_name: Its name, which also gives its place in the order of processing.
            replace: Whether a slice of that name may be replaced. If it was processed, it counts as
                changed, and a `LakewrightWarning` names the call that processes it again.

        Raises:
            UsageError: A slice has the name already, or the name or the frame can't be landed.
            ItemLocked: A run is processing the slice that would be replaced.
            NotInstalled: The frame is not one of Spark, and there is no pyarrow.
        """
        with quiet_pyspark(), warned():
            return land(self._opened.app, self.declared.id, frame, slice_name, replace=replace)

    def verdict(self, slice_name: str) -> Verdict:
        """Return what the manifest says of a slice for this entity, such as `processed`.

        It is `unknown` for a slice that no run has discovered yet.
        """
        item = self._opened.app.ledger.item(self._item(slice_name))
        return item.verdict(application_of(self._opened.app.project.name, self.declared))

    def resolve(self, slice_name: str, *, reason: str = NO_REASON) -> None:
        """Let a failed slice be processed again, with its present content.

        Raises:
            UsageError: The manifest has no such slice, or it has not failed.
        """
        self._operate("resolve", slice_name, reason)

    def skip(self, slice_name: str, *, reason: str = NO_REASON) -> None:
        """Leave a slice out, so that those after it are processed; resolve a failed one before.

        If it was processed already, a `LakewrightWarning` says so: `apply` takes its rows out.

        Raises:
            UsageError: The manifest has no such slice.
        """
        self._operate("skip", slice_name, reason)

    def unskip(self, slice_name: str, *, reason: str = NO_REASON) -> None:
        """Undo the skip of a slice, such as that of an undo, so that it is processed.

        If the next run refuses it, as later slices are processed, a `LakewrightWarning` says so.

        Raises:
            UsageError: The manifest has no such slice, or it is not skipped.
        """
        self._operate("unskip", slice_name, reason)

    def requeue(
        self, slice_name: str, *, cascade: bool = False, late: bool = False, reason: str = NO_REASON
    ) -> tuple[str, ...]:
        """Let a processed slice be processed again, with its present content.

        Args:
            slice_name: Its name.
            cascade: Process the slices after it again, too.
            late: Process it although slices after it are processed. If the next run refuses its processing
                time, a `LakewrightWarning` says so.
            reason: Why; kept in the record.

        Returns:
            Ids of later items that were processed: requeued with `cascade`, otherwise perhaps wrong now.

        Raises:
            UsageError: The manifest has no such slice, or slices after it are processed and neither `cascade`
                nor `late` is given.
        """
        return self._operate("requeue", slice_name, reason, cascade=cascade, late=late).later

    def accept(self, slice_name: str, *, reason: str = NO_REASON) -> None:
        """Accept the present content of a changed slice without processing it again.

        Raises:
            UsageError: The manifest has no such slice, or it is gone or has not changed.
            ItemLocked, ItemFailed: A run is processing the slice, or it failed and must be resolved.
        """
        self._operate("accept", slice_name, reason)

    def undo(
        self,
        slice_name: str,
        *,
        requeue: bool = False,
        over_foreign: bool = False,
        dry_run: bool = False,
        reason: str = NO_REASON,
    ) -> Undone:
        """Take a processed slice back: the silver table is as if it had never been processed.

        Args:
            slice_name: Its name.
            requeue: Process it again in the next run, and the slices after it; otherwise it is skipped.
            over_foreign: Allow commits of other writers to be lost.
            dry_run: Only return what would change, with some of the rows.
            reason: Why; kept in the commit and in the records.

        Raises:
            UsageError: The slice is not in the table.
            DataLossError: Commits of other writers, or removed files of old versions, stand against it.
            SliceError: Slices that must be applied again are gone from bronze, or have changed.
        """
        app, name = self._opened.app, self.declared.id
        choices: dict[str, Any] = {"is_requeued": requeue, "is_over_foreign": over_foreign}
        if dry_run:
            with quiet_pyspark():
                return preview_undo(app, name, slice_name, **choices)
        with self._opened.run():
            done = undo_slice(app, name, slice_name, **choices, author=user_name(), reason=reason)
        _warn(filter(None, [done.skipped_words]))
        return done

    def rebuild(
        self,
        *,
        from_slice: str | None = None,
        from_time: str | date | datetime | None = None,
        include: str | Iterable[str] = (),
        over_foreign: bool = False,
        check: bool = False,
        reason: str = NO_REASON,
    ) -> Rebuilt:
        """Build the silver table again from its slices, under today's declaration, and swap it in.

        Args:
            from_slice: The first slice that is applied again; what the table held before it stays.
            from_time: The processing time from which on slices are applied again: a time or ISO
                8601 text; without an offset it is in the lake's time zone.
            include: Names of slices that wait, which are applied where their processing times put them.
            over_foreign: Allow commits that no slice made to be lost.
            check: Only build beside the table and compare.
            reason: Why; kept in the commit and in the records.

        Raises:
            UsageError: No slice was processed, or the start is not valid.
            DataLossError: Commits that no slice made would be lost.
            SliceError: Slices are gone from bronze, or have changed.
            TargetError: A slice cannot be applied under today's declaration; the table is as it was.
        """
        with self._opened.run():
            return rebuild_table(
                self._opened.app,
                self.declared.id,
                from_slice=from_slice,
                from_time=time_text(from_time, self._opened.app.project.lake.zone),
                include=texts_of("include", include),
                is_over_foreign=over_foreign,
                is_check=check,
                author=user_name(),
                reason=reason,
            )

    def _operate(self, action: str, slice_name: str, reason: str, **options: bool) -> Operated:
        item = self._item(slice_name)
        chosen = [item] if action == "requeue" else item
        done = ACTIONS[action].act(self._opened.app, chosen, author=user_name(), reason=reason, **options)
        _warn(done.notes)
        return done

    def _item(self, slice_name: str) -> str:
        if not slice_name.strip(".") or "/" in slice_name:
            raise UsageError(
                f"{slice_name!r} is not the name of a slice of {self.name}",
                remedy="A name is that of a file or folder in its bronze folder, without a path.",
            )
        return item_id(self.declared.places(self._opened.app.project.lake).slices.place(slice_name))

    def process(
        self,
        slice_name: str | None = None,
        *,
        processing_time: str | date | datetime | None = None,
        strategy: str | None = None,
        late: bool = False,
        allow_data_loss: bool = False,
        allow_backdated: bool = False,
        wait: bool = False,
    ) -> ProcessResult:
        """Process all pending slices in order, or one of them; failures are in the result.

        Args:
            slice_name: Its name; without it, every slice that is ready.
            processing_time: When versions begin and end: a time, ISO 8601 text, or an expression over the
                slice such as `${slice.date}`. Without an offset it is in the lake's time zone. By default it
                is the one that all jobs declare for the entity's slices, or now.
            strategy: `full`, `merge` or `historic`, used instead of the entity's own.
            late: Allow a slice to be applied although a later one is processed.
            allow_data_loss: Allow `full` to replace the rows of another strategy.
            allow_backdated: Allow a processing time that is earlier than the table's.
            wait: Wait for slices that another run is processing.

        Raises:
            UsageError: There is no such slice, or the processing time is no time.
            BackdatedError: The processing time is not later than the table's.
        """
        return process_entity(
            self._opened,
            self.declared.id,
            slice_name,
            strategy=strategy,
            processing_time=time_text(processing_time, self._opened.app.project.lake.zone),
            permissions=Permissions(
                allow_data_loss=allow_data_loss, allow_backdated=allow_backdated, allow_late=late
            ),
            wait=wait,
        )

    def history(self, *key: object) -> RecordLife:
        """Return the life of one record: each version, by which slice, in which run; oldest first.

        Args:
            *key: The value of the business key, or its values in the order of the declaration.

        Raises:
            UsageError: The entity has no business key, or the key has another number of values.
            TargetError: It has no table yet.
        """
        with quiet_pyspark():
            return record_life(self._opened.app, self.declared.id, tuple(map(key_text, key)))

    def changes(self, slice_name: str, *, rows: int = 20) -> SliceChanges:
        """Return what a processed slice changed: the records before and after its commit, compared.

        Args:
            slice_name: Its name.
            rows: The largest number of records to return.

        Raises:
            UsageError: The table has no commit of such a slice, or the entity has no business key.
            TargetError: The files of these versions are gone.
        """
        with quiet_pyspark():
            return slice_changes(self._opened.app, self.declared.id, slice_name, limit=count_of("rows", rows))

    def rehearse(
        self,
        slice_name: str,
        *,
        strategy: str | None = None,
        processing_time: str | date | datetime | None = None,
        late: bool = False,
        allow_data_loss: bool = False,
        allow_backdated: bool = False,
        rows: int = 20,
    ) -> RehearsedSlice:
        """Return what processing a slice would change; it is applied to a clone of the silver table only.

        Args:
            slice_name: Its name; it may be ready, failed, skipped or processed already.
            strategy: `full`, `merge` or `historic`, used instead of the entity's own.
            processing_time: As in `process`.
            late: As in `process`; without it, the result has the error with which a run would end.
            allow_data_loss: As in `process`.
            allow_backdated: As in `process`.
            rows: The largest number of records to return.

        Raises:
            UsageError: There is no such slice, or the processing time is no time.
            LeaseHeld: Another process is rehearsing a slice of the entity.
        """
        with self._opened.run():
            return rehearse_slice(
                self._opened.app,
                self.declared.id,
                slice_name,
                strategy=strategy,
                processing_time=time_text(processing_time, self._opened.app.project.lake.zone),
                permissions=Permissions(
                    allow_data_loss=allow_data_loss, allow_backdated=allow_backdated, allow_late=late
                ),
                limit=count_of("rows", rows),
            )

    def __repr__(self) -> str:
        return f"<Entity {self.name} ({self.strategy})>"


def _warn(notes: Iterable[str]) -> None:
    for note in notes:
        log.warning("%s", note)
        warn(note)


_PROCESSING_TIME = "processing.time"


@checked_methods
class Processing:
    """One slice of an entity, processed under the control of the manifest.

    Args:
        entity: From `Project.entity`.
        slice: Name of the slice in the entity's bronze folder.
        options: `processing.time`: ISO 8601, used instead of the current time. A text that is no time is
            only warned of.
    """

    @checked
    def __init__(self, entity: Entity, slice: str, options: abc.Mapping[str, str] | None = None) -> None:
        self.entity = entity
        self.slice = slice
        self.options = dict(options or {})
        unknown = sorted(self.options.keys() - {_PROCESSING_TIME})
        if unknown:
            raise UsageError(f"unknown option {unknown[0]!r}", remedy=f"There is only {_PROCESSING_TIME}.")

    def process(self, strategy: str | None = None) -> Summary:
        """Process the slice by the entity's strategy, or by another one, and return its metrics.

        Raises:
            LakewrightError: The slice could not be processed: `DuplicateBusinesskeyException`, `ItemFailed`
                and so on. The manifest records the error, too.
        """
        at = self.options.get(_PROCESSING_TIME)
        result = process_entity(
            self.entity._opened,
            self.entity.declared.id,
            self.slice,
            strategy=strategy,
            processing_time=at,
            is_time_lenient=True,
        )
        if result.error is not None:
            raise result.error
        return result.slices[0].summary


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a loaded project.

    Attributes:
        parameters: The type of each parameter, by name.
        targets: Names of its targets, as written.
    """

    name: str
    description: str | None
    parameters: abc.Mapping[str, str]
    targets: tuple[str, ...]

    @classmethod
    def of(cls, name: str, declared: of_job.Job) -> Job:
        """Return a declared job."""
        types = {parameter.name: parameter.type.value for parameter in declared.parameters}
        return cls(name, declared.description, types, tuple(declared.targets))


@checked_methods
@dataclass(frozen=True, slots=True, repr=False)
class Relation:
    """A relation of a loaded project: a declared location of rows."""

    name: str
    kind: str
    _opened: Opened

    def read(self, *, partition: abc.Mapping[str, object] | None = None, **values: object) -> DataFrame:
        """Return its rows as a DataFrame of `Project.spark`.

        Args:
            partition: Values, or lists of them, by partition column; without it, all rows.
            **values: Values of names that its declaration uses, such as a job's parameters.

        Raises:
            SpecError: Its declaration uses other names, or it has no such partition column.
            UsageError: The value of a partition column is a `Range`.
        """
        for column, value in (partition or {}).items():
            if isinstance(value, Range):
                raise UsageError(
                    f"partition column {column}: a Range is not taken, only values",
                    remedy=f"Give a list of values, or filter the rows: read().where(…{column}…).",
                )
        given = self._opened.values(values)
        return self._opened.read(lambda app: read_relation(app, self.name, partition=partition, values=given))

    def __repr__(self) -> str:
        return f"<Relation {self.name} ({self.kind})>"


@checked_methods
@dataclass(frozen=True, slots=True, repr=False)
class Mapping:
    """A mapping of a loaded project: a declared transformation of rows."""

    name: str
    kind: str
    _opened: Opened

    def read(self, **values: object) -> DataFrame:
        """Return its rows as a DataFrame of `Project.spark`; they are computed when the frame is used.

        Args:
            **values: Values of names that its declaration uses, such as a job's parameters.

        Raises:
            SpecError: Its declaration, or one that it reads, uses other names.
        """
        given = self._opened.values(values)
        return self._opened.read(lambda app: read_mapping(app, self.name, values=given))

    def __repr__(self) -> str:
        return f"<Mapping {self.name} ({self.kind})>"
