"""The `entity` target: a silver table, brought up to date by its strategy from the slices in bronze."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.errors import (
    ItemFailed,
    LakeMoved,
    LakewrightError,
    LeaseHeld,
    OperatorError,
    TargetError,
    VerificationError,
)
from lakewright.lake.observation import observe_table
from lakewright.lake.table import drop_table, set_properties, truncate_table
from lakewright.lake.table_state import TableState
from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query
from lakewright.plan.dirtiness import Dirtiness, entity_dirtiness
from lakewright.plan.observation import Answer, Hold, Observation, TableChange
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.slices.adopt import adopt_before
from lakewright.slices.application import application_of
from lakewright.slices.foresee import fail_foreseeable
from lakewright.slices.forget import forget
from lakewright.slices.pending import Pending, slice_name
from lakewright.slices.preview import preview_next
from lakewright.slices.process import Bench, ProcessingOptions, held_error, look_for_slices, process_pending
from lakewright.slices.result import ProcessResult
from lakewright.spec.models.base import Reference
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.strategies.adopting.columns import adopted_columns, is_adoptable
from lakewright.strategies.compatibility import refuse_other_table
from lakewright.targets.context import Context
from lakewright.targets.lease import leases_held
from lakewright.targets.settings import Settings
from lakewright.targets.silver import broken_rules
from lakewright.targets.stale import stale_locks, with_stale_locks
from lakewright.targets.target import Target
from lakewright.targets.upkeep import maintain, silver_resource
from lakewright.transform.system import SystemColumns

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["EntityTarget", "bench_of"]

_FROM_BRONZE = frozenset({Phase.VALIDATE, Phase.BUILD, Phase.TRUNCATE, Phase.DESTROY})
_COUNTS = (
    "records_in_slice",
    "inserted",
    "updated",
    "unchanged",
    "deleted",
    "changed",
    "closed",
    "inferred_deletes",
)


def _lower(declared: object) -> object:
    text = declared.strip().lower() if isinstance(declared, str) else declared
    return "merge" if text == "delta" else text


def bench_of(context: Context, entity: Entity, options: ProcessingOptions) -> Bench:
    """Return what processing an entity's slices works with."""
    return Bench(
        lake=context.workspace.lake,
        ledger=context.ledger,
        holder=context.leases.holder,
        application=application_of(context.workspace.project.name, entity),
        clock=context.clock,
        lease=context.leases.duration,
        takeover=context.takeover,
        is_stopping=context.is_stopping,
        is_cut_off=context.is_cut_off,
        warn=context.warn,
        options=options,
    )


class EntityTarget(Target):
    """Puts an entity into a job.

    Its table is made by its first slice, whose columns it takes; CREATE only brings table properties up to
    date. TRUNCATE and DESTROY have the manifest forget what was processed, so that BUILD starts over.
    """

    entity: str = Declared(description="Name of the entity.")
    strategy: Annotated[Strategy, BeforeValidator(_lower)] | None = Declared(
        default=None, description="In place of the entity's own."
    )
    processing_time: str | None = Declared(
        default=None, description="ISO 8601 time at which the slice counts as processed."
    )

    def references(self) -> Iterable[Reference]:
        """Return the entity."""
        return [Reference("entity", self.entity, ("entity",))]

    def labels(self, workspace: Workspace) -> frozenset[str]:
        """Return its own labels, and the groups of its entity."""
        entity = workspace.entity(self.entity)
        groups = {"group": entity.group, "connectiongroup": entity.connectiongroup}
        return super().labels(workspace) | {f"{key}={value}" for key, value in groups.items() if value}

    def phases(self) -> frozenset[Phase]:
        """Return all phases."""
        return frozenset(Phase)

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the slices in bronze where they are read; to clean up, the same the other way round."""
        if phase not in _FROM_BRONZE:
            return frozenset()
        bronze = workspace.entity(self.entity).places(workspace.lake.settings).bronze
        return frozenset({Resource.file(f"{bronze}/*")})

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the silver table, where it is written."""
        if phase in (Phase.VALIDATE, Phase.VERIFY):
            return frozenset()
        return frozenset({self._silver(workspace)})

    def _silver(self, workspace: Workspace) -> Resource:
        return silver_resource(workspace.entity(self.entity).places(workspace.lake.settings).silver)

    def observe(self, context: Context) -> Observation:
        """Return what the silver table is like, and which slices it lacks; nothing is recorded by asking."""
        workspace = context.workspace
        entity = workspace.entity(self.entity)
        subject = str(self._silver(workspace))
        if not entity.enabled:
            return Observation(subject, exists=Answer.YES, filled=Answer.NO)
        bench = self._bench(context, entity)
        pending, hold = _looked_for(bench, entity)
        state = observe_table(workspace.lake, entity.places(workspace.lake.settings).silver)
        pending, hold = _held_up(bench, entity, pending, state) or (pending, hold)
        if context.options.wait and hold is not None and hold.is_locked:
            pending, hold = _after_waiting(pending), None
        # What the manifest counts as processed is to be forgotten too, be the table there or not.
        is_begun = next(iter(self._processed(context, entity)), None) is not None
        return Observation(
            subject,
            exists=Answer.of(state.exists or is_begun),
            filled=Answer.YES
            if is_begun
            else Answer.of(None if state.is_empty is None else not state.is_empty),
            changes=(*_property_changes(entity, state), *self._adoption(context, entity, state, pending)),
            pending=tuple(slice_name(item) for item in pending.ready),
            waiting=tuple(slice_name(item) for item in pending.waiting),
            hold=hold,
            notes=_notes(bench, entity, pending) if context.options.preview else (),
        )

    def _adoption(
        self, context: Context, entity: Entity, state: TableState, pending: Pending
    ) -> tuple[TableChange, ...]:
        """What adopting the table would change, once a slice is there that says how rows are hashed."""
        if not is_adoptable(entity, state) or not pending.ready:
            return ()
        system = SystemColumns(context.workspace.lake.settings.systemfield_prefix, entity.destination)
        return tuple(map(TableChange, adopted_columns(entity, state, system).changes(system, state.rows)))

    def dirty(self, phase: Phase, observation: Observation, settings: Settings) -> Dirtiness:
        """Return whether the target must run in a phase; in BUILD, whether there are slices to process."""
        if phase is Phase.CREATE and observation.exists is Answer.NO:
            return Dirtiness.no("its table is made by its first slice")
        if phase is Phase.VALIDATE and observation.error is None and not observation.pending:
            return Dirtiness.no("no slice is to be looked at")
        return super().dirty(phase, observation, settings)

    def build_dirtiness(self, observation: Observation, settings: Settings) -> Dirtiness:
        """Return whether there are slices to process."""
        del settings
        return entity_dirtiness(observation)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Check, migrate, process slices, check again, empty or remove."""
        entity = context.workspace.entity(self.entity)
        if not entity.enabled:
            return Outcome(Status.SKIPPED, reasons=(f"entity {entity.name!r} is disabled",))
        outcome = _WORK[phase](self, context, entity)
        context.workspace.written(self.provides(context.workspace, phase))
        return outcome

    def _validate(self, context: Context, entity: Entity) -> Outcome:
        bench = self._bench(context, entity)
        pending, slices = look_for_slices(bench, entity)
        failed = fail_foreseeable(bench, entity, pending, slices)
        metrics = {"slices_ready": len(pending.ready) - len(failed), "slices_waiting": len(pending.waiting)}
        if not failed:
            return Outcome(metrics=metrics)
        return Outcome(
            Status.SUCCESS_WITH_ERRORS,
            metrics={**metrics, "slices_failed": len(failed)},
            reasons=tuple(error.message for error in failed),
            error=failed[0].as_fault(),
        )

    def _create(self, context: Context, entity: Entity) -> Outcome:
        lake = context.workspace.lake
        address = entity.places(lake.settings).silver
        state = observe_table(lake, address)
        changes = _property_changes(entity, state)
        if not state.exists:
            return Outcome(Status.SKIPPED, reasons=("its table is made by its first slice",))
        if is_adoptable(entity, state):
            return self._adopt(context, entity)
        if changes:
            with leases_held(context, frozenset({self._silver(context.workspace)})):
                set_properties(lake.isolated(), address, entity.settings.table_properties)
        return Outcome(reasons=tuple(change.description for change in changes))

    def _adopt(self, context: Context, entity: Entity) -> Outcome:
        bench = self._bench(context, entity)
        pending, _ = look_for_slices(bench, entity)
        if not pending.ready:
            return Outcome(Status.SKIPPED, reasons=("its table is adopted with its first slice",))
        with leases_held(context, frozenset({self._silver(context.workspace)})):
            counts = adopt_before(bench, entity, pending.ready[0])
        return Outcome(metrics=dict(counts), reasons=("the table was adopted",))

    def _build(self, context: Context, entity: Entity) -> Outcome:
        self._refuse_lost_table(context, entity)
        bench = self._bench(context, entity)
        stale = stale_locks(bench, entity)
        return with_stale_locks(self._process(context, entity, bench), stale)

    def _process(self, context: Context, entity: Entity, bench: Bench) -> Outcome:
        result = process_pending(bench, entity)
        if result.error is not None:
            return Outcome(
                _failed_status(result.error, context.run_id),
                metrics=_metrics(result),
                reasons=tuple(error.message for error in result.errors),
                error=result.error.as_fault(),
            )
        if result.is_stopped:
            return Outcome(Status.ABORTED, metrics=_metrics(result), reasons=("the run was asked to stop",))
        if not result.slices:
            return Outcome(Status.SKIPPED, reasons=("every slice has been processed", *result.warnings))
        upkeep = _kept_in_shape(context, entity)
        return Outcome(metrics={**_metrics(result), **upkeep}, reasons=result.warnings)

    def _refuse_lost_table(self, context: Context, entity: Entity) -> None:
        silver = entity.places(context.workspace.lake.settings).silver
        done = next(iter(self._processed(context, entity)), None)
        if done is not None and not observe_table(context.workspace.lake, silver).exists:
            raise TargetError(
                f"{self.label}: by the manifest slices such as {slice_name(done)} are in {silver}, "
                "but no table is there",
                remedy="Bring the table back, or run DESTROY and then BUILD to start over.",
            )

    def _verify(self, context: Context, entity: Entity) -> Outcome:
        workspace = context.workspace
        silver = entity.places(workspace.lake.settings).silver
        if not observe_table(workspace.lake, silver).exists:
            raise VerificationError(
                f"{self.label}: there is no table at {silver}",
                remedy="Its first slice makes it: see whether one is in bronze, and run BUILD.",
            )
        broken = broken_rules(workspace, entity)
        if broken:
            raise VerificationError(
                f"{self.label}: {'; '.join(broken)}",
                remedy=f"`lakewright doctor {entity.name}` says since when, and what would mend it.",
            )
        return Outcome()

    def _truncate(self, context: Context, entity: Entity) -> Outcome:
        lake = context.workspace.lake
        silver = entity.places(lake.settings).silver
        with leases_held(context, frozenset({self._silver(context.workspace)})):
            if observe_table(lake, silver).exists:
                truncate_table(lake, silver)
            return self._start_over(context, entity, "its table was emptied")

    def _destroy(self, context: Context, entity: Entity) -> Outcome:
        lake = context.workspace.lake
        with leases_held(context, frozenset({self._silver(context.workspace)})):
            drop_table(lake, entity.places(lake.settings).silver)
            return self._start_over(context, entity, "its table was removed")

    def _start_over(self, context: Context, entity: Entity, reason: str) -> Outcome:
        kept = forget(self._bench(context, entity), entity, reason)
        if not kept:
            return Outcome()
        named = ", ".join(kept[:5])
        return Outcome(reasons=(f"stay processed, as others have processed them too: {named}",))

    def _processed(self, context: Context, entity: Entity) -> Iterable[Any]:
        application = application_of(context.workspace.project.name, entity)
        query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}))
        return context.ledger.store.select(query)

    def _bench(self, context: Context, entity: Entity) -> Bench:
        options = ProcessingOptions(
            strategy=self.strategy,
            processing_time=self.processing_time,
            permissions=context.options.permissions,
            wait=context.options.wait,
        )
        return bench_of(context, entity, options)


_WORK = {
    Phase.VALIDATE: EntityTarget._validate,
    Phase.CREATE: EntityTarget._create,
    Phase.BUILD: EntityTarget._build,
    Phase.VERIFY: EntityTarget._verify,
    Phase.TRUNCATE: EntityTarget._truncate,
    Phase.DESTROY: EntityTarget._destroy,
}


def _property_changes(entity: Entity, state: TableState) -> tuple[TableChange, ...]:
    if not state.exists:
        return ()
    return tuple(
        TableChange(f"set table property {key} to {value}")
        for key, value in entity.settings.table_properties.items()
        if state.properties.get(key) != value
    )


def _kept_in_shape(context: Context, entity: Entity) -> dict[str, Any]:
    """Return what maintenance did, as a metric; where it can't be done now, a later run will."""
    if not entity.settings.maintenance.enabled or context.is_stopping():
        return {}
    try:
        upkeep = maintain(context.workspace.lake, context.leases, entity)
    except LeaseHeld as held:
        context.warn(f"{entity.name}: not maintained: {held.message}")
        return {}
    except Exception as error:  # the slices are in: what is only for speed must not fail their target
        if context.is_cut_off():
            raise
        context.warn(f"{entity.name}: maintenance failed, and the next run tries again: {error}")
        return {}
    return {"maintenance": upkeep.as_json()} if upkeep.is_done else {}


def _failed_status(error: LakewrightError, run_id: str) -> Status:
    """Return FAILED for what this run has met, and BLOCKED for what others hold or have left failed."""
    if not isinstance(error, OperatorError):
        return Status.FAILED
    is_own = isinstance(error, ItemFailed) and error.details.get("run_id") == run_id
    return Status.FAILED if is_own else Status.BLOCKED


def _looked_for(bench: Bench, entity: Entity) -> tuple[Pending, Hold | None]:
    """Return an entity's slices without recording any, and what holds them back."""
    try:
        pending, _ = look_for_slices(bench, entity, is_recorded=False)
    except LakeMoved as moved:
        return Pending(), Hold(moved.message, moved.as_fault(), is_locked=False)
    return pending, _hold(bench, pending)


def _notes(bench: Bench, entity: Entity, pending: Pending) -> tuple[str, ...]:
    found = preview_next(bench, entity, pending)
    return () if found is None else (found,)


def _held_up(
    bench: Bench, entity: Entity, pending: Pending, state: TableState
) -> tuple[Pending, Hold] | None:
    """The slices, and what holds them all back: a table that isn't this entity's; None where it is."""
    if is_adoptable(entity, state):
        return None
    try:
        refuse_other_table(
            state,
            bench.options.strategy or entity.strategy,
            entity,
            allow_data_loss=bench.options.permissions.allow_data_loss,
        )
    except LakewrightError as error:
        if pending.ready:
            held = replace(pending, ready=(), waiting=(*pending.ready, *pending.waiting))
            return held, Hold(error.message, error.as_fault(), is_locked=False)
    return None


def _hold(bench: Bench, pending: Pending) -> Hold | None:
    if pending.held is None:
        return None
    error: LakewrightError = held_error(bench, pending.held)
    return Hold(error.message, error.as_fault(), is_locked=pending.held.processing is not None)


def _after_waiting(pending: Pending) -> Pending:
    """The slices as they may be once the run that holds one of them has ended."""
    held = () if pending.held is None else (pending.held,)
    return replace(pending, ready=(*pending.ready, *held, *pending.waiting), waiting=(), held=None)


def _metrics(result: ProcessResult) -> dict[str, Any]:
    """Return the sums over all slices, and each slice's own numbers."""
    each = [done.as_json() for done in result.slices]
    sums = {name: sum(numbers[name] for numbers in each) for name in _COUNTS}
    return {**sums, "slices": each}
