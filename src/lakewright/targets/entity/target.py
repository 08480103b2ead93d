"""The `entity` target: a silver table that its strategy keeps up to date from the slices in bronze."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, field_validator
from pydantic import Field as Declared

from lakewright.manifest.record import parse_instant_in
from lakewright.plan.dirtiness import Dirtiness, entity_dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.slices.application import application_of, applications_before
from lakewright.slices.context import SliceSelection
from lakewright.slices.processing_time import unknown_members
from lakewright.spec.models.base import RefersTo
from lakewright.spec.models.entity import Strategy
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context, TargetDefaults
from lakewright.targets.entity.observation import observe_entity
from lakewright.targets.entity.phases import PHASES
from lakewright.targets.entity.work import EntityWork
from lakewright.targets.lease import table_resource
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


_READS_BRONZE = frozenset({Phase.VALIDATE, Phase.BUILD, Phase.TRUNCATE, Phase.DESTROY})


def _strategy_name(declared: object) -> object:
    text = declared.strip().lower() if isinstance(declared, str) else declared
    return "merge" if text == "delta" else text


class EntityTarget(Target):
    """Processes the slices of an entity into its silver table.

    TRUNCATE and DESTROY affect the whole table and all slices, which BUILD then processes again.
    """

    own_phases: ClassVar[frozenset[Phase]] = frozenset(Phase)

    entity: Annotated[str, RefersTo.ENTITY] = Declared(description="Name of the entity.")
    strategy: Annotated[Strategy, BeforeValidator(_strategy_name)] | None = Declared(
        default=None, description="Overrides the entity's strategy."
    )
    processing_time: str | None = Declared(
        default=None,
        description="Processing time: ISO 8601, or an expression such as `${slice.date}`.",
    )
    slices: str | None = Declared(
        default=None,
        min_length=1,
        description="Pattern of the names of the slices to process, such as `${day}*`; default: all pending.",
    )
    until: str | None = Declared(
        default=None,
        min_length=1,
        description="Process slices up to this name, and those whose name begins with it.",
    )

    deferred: ClassVar[frozenset[str]] = frozenset({"processingTime", "processing_time"})

    @field_validator("processing_time")
    @classmethod
    def _is_time(cls, text: str | None) -> str | None:
        if text is not None and "$" not in text and parse_instant_in(text, ZoneInfo("UTC")) is None:
            raise ValueError(f"{text!r} is not a time in ISO 8601, such as 2024-05-01T06:00:00")
        for member in () if text is None else unknown_members(text):
            raise ValueError(f"a slice has no {member!r} in expressions; it has date, name and time")
        return text

    def labels(self, workspace: Workspace) -> frozenset[str]:
        """Return the target's own labels, and the groups of its entity."""
        entity = workspace.entity(self.entity)
        groups = {"group": entity.group, "connectiongroup": entity.connectiongroup}
        return super().labels(workspace) | {f"{key}={value}" for key, value in groups.items() if value}

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the slices in bronze; also in TRUNCATE and DESTROY, to run before their writers."""
        if phase not in _READS_BRONZE:
            return frozenset()
        bronze = workspace.entity(self.entity).places(workspace.lake.settings).slices.folder
        return frozenset({Resource.file(f"{bronze}/*")})

    def targets_before(self, workspace: Workspace) -> tuple[str, ...]:
        """Return those of `after`, and the targets of the entities that must process a slice before."""
        project = workspace.project
        before = {str(each) for each in applications_before(workspace.entity(self.entity))}
        if not before:
            return self.after
        entities = {
            each.called
            for each in project.entities.values()
            if before & {(app := application_of(project.name, each)).name, str(app)}
        }
        found = (name for name in project.targets if project.processed_entities.get(name) in entities)
        return tuple(dict.fromkeys((*self.after, *found)))

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the silver table in the phases that write it."""
        if phase in (Phase.VALIDATE, Phase.VERIFY):
            return frozenset()
        return frozenset({self._silver(workspace)})

    def table_by_path(self, workspace: Workspace) -> tuple[str, str] | None:
        """Return the destination and the location of the silver table."""
        entity = workspace.entity(self.entity)
        location = entity.places(workspace.lake.settings).silver.location
        return None if location is None else (entity.destination, location)

    def _silver(self, workspace: Workspace) -> Resource:
        return table_resource(workspace.entity(self.entity).places(workspace.lake.settings).silver)

    def observe(self, context: Context) -> Observation:
        """Return the state of the silver table, and the slices that it lacks; nothing is recorded."""
        work = self.work(context)
        if not work.entity.enabled:
            return Observation(str(work.silver_resource), is_disabled=True)
        return observe_entity(work)

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run in a phase; in BUILD, whether there are slices to process."""
        if observation.is_disabled:
            return Dirtiness.no(Reason(Code.DISABLED))
        is_lost = observation.exists is Answer.NO and observation.filled is Answer.YES
        if phase is Phase.CREATE and observation.exists is Answer.NO:
            return Dirtiness.no(Reason(Code.TABLE_GONE if is_lost else Code.MADE_BY_SLICE))
        if phase is Phase.VALIDATE and observation.error is None and not observation.pending:
            return Dirtiness.no(Reason(Code.NONE_TO_CHECK))
        if phase.is_cleanup and is_lost:
            found = Dirtiness.yes(Reason(Code.FORGOTTEN))
        else:
            found = super().dirtiness(phase, observation, defaults)
        if phase is Phase.VERIFY and observation.exists is Answer.NO and not observation.pending:
            return found.plus(Reason(Code.FAILS_WITHOUT_TABLE))
        if phase.is_cleanup and found.is_to_run and self._selection.is_limited:
            return found.plus(Reason(Code.ALL_SLICES, {"limits": str(self._selection)}))
        return found

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether there are slices to process."""
        return entity_dirtiness(observation)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Do the phase's work; a disabled entity is skipped."""
        work = self.work(context)
        if not work.entity.enabled:
            return Outcome(Status.SKIPPED, reasons=(Reason(Code.DISABLED),))
        outcome = PHASES[phase](work)
        context.workspace.invalidate(self.provides(context.workspace, phase))
        return outcome

    def work(self, context: Context) -> EntityWork:
        """Return the entity as a run with this context works on it."""
        entity = context.workspace.entity(self.entity)
        return EntityWork(context, entity, self.label, self.strategy, self.processing_time, self._selection)

    @property
    def _selection(self) -> SliceSelection:
        return SliceSelection(self.slices, self.until)
