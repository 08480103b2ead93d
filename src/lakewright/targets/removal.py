"""Targets that remove relations, their rows, files, and files that no version of a table needs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import DataLossError, TargetError, VerificationError
from lakewright.lake.delta_sql import compact_table, table_detail, vacuum_table
from lakewright.lake.files import Files, files_at
from lakewright.lake.partition import Selection, expand_selection
from lakewright.lake.paths import join
from lakewright.plan.dirtiness import Dirtiness, destroy_dirtiness, truncate_dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.relation import ManagedRelation, Relation, StoredRelation
from lakewright.targets.context import Context, TargetDefaults
from lakewright.targets.file_output import PlaceTarget
from lakewright.targets.lease import hold_leases
from lakewright.targets.target import DurationText, OutputTarget, Target
from lakewright.workspace.readable_parts import RelationReference

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


_OPPOSITE = {Answer.YES: Answer.NO, Answer.NO: Answer.YES, Answer.UNKNOWN: Answer.UNKNOWN}


class _RelationTarget(Target):
    """A target that names a relation."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="The relation, or its name.")


class DropTarget(_RelationTarget, OutputTarget):
    """Removes a relation in CREATE and in DESTROY; VERIFY fails if it still exists."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.CREATE, Phase.VERIFY, Phase.DESTROY})

    def managed(self, workspace: Workspace) -> ManagedRelation:
        """Return the relation.

        Raises:
            SpecError: The relation can only be read.
        """
        return ManagedRelation.of(Relation.named(workspace, self.relation), self.label)

    def places(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the relation."""
        return self.managed(workspace).resources(workspace)

    def observe(self, context: Context) -> Observation:
        """Return whether the relation has been removed.

        `exists` is inverted: it is YES once the relation is gone, as that is what CREATE achieves. `filled`
        says whether the relation exists, and DESTROY leaves it as NO.
        """
        found = self.managed(context.workspace).observe(context.workspace)
        if found.error is not None:
            return Observation(f"drop {found.subject}", error=found.error, warning=found.warning)
        return Observation(f"drop {found.subject}", exists=_OPPOSITE[found.exists], filled=found.exists)

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the relation exists and must be removed."""
        if phase is Phase.VERIFY:
            return super().dirtiness(phase, observation, defaults)
        is_there = _OPPOSITE[observation.exists] if phase is Phase.CREATE else observation.filled
        return destroy_dirtiness(replace(observation, exists=is_there))

    def verify(self, context: Context) -> Outcome:
        """Check that the relation does not exist."""
        found = self.managed(context.workspace).observe(context.workspace)
        if found.exists is not Answer.NO:
            raise VerificationError(f"{self.label}: {found.subject} exists", remedy="Run CREATE.")
        return Outcome()

    def work(self, context: Context, phase: Phase) -> Outcome:
        """Remove the relation.

        Raises:
            DataLossError: The relation holds rows, and CREATE is not allowed to lose them.
        """
        relation, workspace = self.managed(context.workspace), context.workspace
        found = relation.observe(workspace)
        is_loss = found.exists is not Answer.NO and found.filled is not Answer.NO
        if phase is Phase.CREATE and is_loss and not context.options.permissions.allow_data_loss:
            raise DataLossError(f"{self.label}: {found.subject} holds rows, which would be lost")
        relation.destroy(workspace)
        return Outcome()


class TruncateTarget(_RelationTarget, OutputTarget):
    """Empties a relation or partitions in BUILD and in TRUNCATE; VERIFY fails if any rows are left."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.BUILD, Phase.VERIFY, Phase.TRUNCATE})

    partitions: Selection = Declared(
        default_factory=dict,
        description="Values, lists or ranges; default: all partitions.",
    )

    def stored(self, workspace: Workspace) -> StoredRelation:
        """Return the relation.

        Raises:
            SpecError: The relation holds no rows of its own.
        """
        return StoredRelation.of(Relation.named(workspace, self.relation), self.label)

    def _selected(self, workspace: Workspace) -> tuple[dict[str, str], ...]:
        relation = self.stored(workspace)
        self.check_partition(workspace, relation, self.partitions, "partitions")
        return expand_selection(relation.partitions, self.partitions) or ({},)

    def places(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the partitions that are emptied, or the whole relation."""
        relation = self.stored(workspace)
        return frozenset().union(*(relation.resources(workspace, each) for each in self._selected(workspace)))

    def observe(self, context: Context) -> Observation:
        """Return whether rows are left; `filled` is inverted: YES if there are none, as BUILD leaves it."""
        found = self._filled(context.workspace)
        subject = f"truncate {self.name}: {', '.join(sorted(found))}"
        if Answer.YES in found.values():
            return Observation(subject, exists=Answer.YES, filled=Answer.NO)
        unknown = Answer.UNKNOWN in found.values()
        return Observation(subject, exists=Answer.YES, filled=Answer.UNKNOWN if unknown else Answer.YES)

    def _filled(self, workspace: Workspace) -> dict[str, Answer]:
        relation = self.stored(workspace)
        observations = [relation.observe(workspace, each) for each in self._selected(workspace)]
        return {each.subject: each.filled for each in observations}

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether there are rows to remove."""
        if phase is Phase.VERIFY:
            return super().dirtiness(phase, observation, defaults)
        return truncate_dirtiness(replace(observation, filled=_OPPOSITE[observation.filled]))

    def verify(self, context: Context) -> Outcome:
        """Check that there are no rows."""
        found = self._filled(context.workspace).items()
        if filled := [subject for subject, answer in found if answer is Answer.YES]:
            raise VerificationError(f"{self.label}: not empty: {', '.join(filled)}", remedy="Run BUILD.")
        return Outcome()

    def work(self, context: Context, phase: Phase) -> Outcome:
        """Remove the rows."""
        for partition in self._selected(context.workspace):
            self.stored(context.workspace).truncate(context.workspace, partition)
        return Outcome()


class DeleteFileTarget(PlaceTarget):
    """Removes a file or folder in BUILD, if it exists."""

    what: ClassVar[str] = "delete"
    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.BUILD})

    location: str = Declared(min_length=1, description="Path or URI.")
    recursive: bool = Declared(default=True, description="Whether a folder that holds files is removed too.")

    def place(self, workspace: Workspace) -> str:
        """Return what is removed.

        Raises:
            SpecError: The project's folder lies in it.
        """
        return workspace.removable(workspace.resolve_location(self.location), self.label)

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether there is anything to remove."""
        return destroy_dirtiness(observation)

    def work(self, context: Context, phase: Phase) -> Outcome:
        """Remove it.

        Raises:
            TargetError: It is a folder that holds files, and `recursive` is false.
        """
        workspace, place = context.workspace, self.place(context.workspace)
        files = files_at(place, workspace.lake)
        if not self.recursive and _is_filled(files, place):
            raise TargetError(f"{self.label}: {place} holds files", remedy="Set recursive: true.")
        files.remove(place)
        return Outcome()


def _is_filled(files: Files, place: str) -> bool:
    """Return whether a place is a folder that holds files."""
    return any(
        join(place, entry.name) != place and files.exists(join(place, entry.name))
        for entry in files.listed(place)
    )


SHORTEST_HOURS = 7 * 24
"""Delta's own default, below which it refuses or warns, depending on its version."""


class DeltaVacuumTarget(_RelationTarget):
    """Vacuums a Delta table in BUILD."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.BUILD})
    always_builds: ClassVar[bool] = True

    retention_time: DurationText | None = Declared(
        default=None,
        description="How long former versions stay readable, at least a week.",
    )
    compaction: bool = Declared(default=False, description="Merge small files first.")
    min_files: int = Declared(
        default=16, ge=1, description="Without effect: Delta chooses the sizes of files."
    )
    max_files: int = Declared(default=64, ge=1, description="Compact only if the table has more files.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.retention_time is not None and self._hours() < SHORTEST_HOURS:
            raise ValueError(
                f"a retentionTime of {self.retention_time} is shorter than a week: who reads a former "
                "version, or writes meanwhile, would lose its files"
            )
        return self

    def table(self, workspace: Workspace) -> DeltaRelation:
        """Return the relation.

        Raises:
            SpecError: It isn't a Delta table.
        """
        return DeltaRelation.of(Relation.named(workspace, self.relation), self.label)

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the table: it is cleaned after it has been written."""
        return self.table(workspace).resources(workspace)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Merge small files if there are many, and remove the files that are no longer needed."""
        workspace = context.workspace
        relation = self.table(workspace)
        with hold_leases(context, relation.resources(workspace)):
            spark, address = workspace.spark, relation.address(workspace)
            files = int(table_detail(spark, address)["numFiles"] or 0)
            is_compacted = self.compaction and files > self.max_files
            if is_compacted:
                compact_table(spark, address)
            vacuum_table(spark, address, None if self.retention_time is None else self._hours())
        workspace.invalidate(relation.resources(workspace))
        return Outcome(metrics={"files_before": files, "compactions": int(is_compacted)})

    def _hours(self) -> float:
        seconds = self.retention_time.exact.total_seconds() if self.retention_time else 0.0
        return float(math.ceil(seconds / 3600))
