"""The base class of targets that write the rows of a mapping into a relation, and how their rows are written.

An append to a Delta table carries an identity, which a run that is resumed shares with the killed one, so
that no rows are added twice.

Source: Delta's documentation, "Idempotent table writes".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field as Declared

from lakewright.errors import Fault, SpecError, TargetError, VerificationError
from lakewright.errors.phrase import Command, Phrase, Placeholder
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.partition import Partition, canonical_partition, within_partition
from lakewright.lake.spark_errors import spark_errors
from lakewright.mappings.mapping import Input
from lakewright.plan.dirtiness import Dirtiness, build_dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.plan.step import Append
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.migration import Tolerated, data_loss
from lakewright.relations.relation import (
    ManagedRelation,
    OutputMode,
    Relation,
    StoredRelation,
    WriteSummary,
    read_mode,
)
from lakewright.spark.causes import causes_of, raised_text
from lakewright.spec.models.base import RefersTo, TextMap, from_text
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context, TargetDefaults, VerifyPolicy
from lakewright.targets.target import OutputTarget
from lakewright.transform.fault_words import fault_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


OutputModeText = Annotated[OutputMode, from_text(read_mode)]

_WITHOUT_MAPPING = frozenset({Phase.CREATE, Phase.VERIFY, Phase.DESTROY})
_CLEANUP = (Phase.TRUNCATE, Phase.DESTROY)


def effective_mode(
    label: str, relation: StoredRelation, workspace: Workspace, *, partition: Partition, mode: OutputMode
) -> tuple[OutputMode, Outcome | None]:
    """Return the mode to write in, and the outcome if the mode says to skip a relation that holds rows.

    Raises:
        SpecError: The relation does not support the mode.
        TargetError: The relation holds rows, and the mode is ERROR_IF_EXISTS.
    """
    if mode not in relation.modes:
        raise SpecError.of(
            f"{relation.label} cannot be written with mode {mode}",
            remedy=f"Choose another mode: {', '.join(sorted(relation.modes))}.",
            subject=label,
        )
    if mode not in (OutputMode.IGNORE_IF_EXISTS, OutputMode.ERROR_IF_EXISTS):
        return mode, None
    present = relation.observe(workspace, partition)
    if present.filled is Answer.NO or present.exists is Answer.NO:
        return OutputMode.APPEND, None
    if mode is OutputMode.ERROR_IF_EXISTS:
        raise TargetError(
            f"{label}: {present.subject} already holds rows",
            remedy="Remove them, or choose another mode: APPEND, OVERWRITE or IGNORE_IF_EXISTS.",
        )
    return mode, Outcome(
        Status.SKIPPED, reasons=(Reason(Code.HAS_ROWS, {"subject": present.subject, "mode": mode.value}),)
    )


def _with_loss(relation: Relation, observation: Observation, context: Context) -> Observation:
    """Return the observation with the refusal of a migration that would lose data without permission.

    The whole relation counts: a migration takes the rows of all partitions.
    """
    lost = [change.loses for change in observation.changes if change.loses is not None]
    if not lost or observation.refusal is not None or context.options.permissions.allow_data_loss:
        return observation
    if relation.observe(context.workspace).filled is not Answer.YES:
        return observation
    return replace(observation, refusal=data_loss(relation.label, lost).as_fault())


_MAY_BE_EMPTY = Phrase(
    "If BUILD had no rows to write, such as those of a skipped slice, ",
    Command("decide", Placeholder("TARGET"), "waive"),
    " accepts that. Otherwise run BUILD, or set verifyPolicy: EMPTY_AS_SUCCESS if it may be empty.",
)


class RowTarget(OutputTarget):
    """Writes rows to a relation, or to a partition of it, in BUILD."""

    if TYPE_CHECKING:  # each class declares them in the order in which its documentation shows its keys
        mode: OutputModeText | None
        parallelism: int | None
        rebalance: bool | None

    @abstractmethod
    def destination(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition to write rows to; an empty one stands for all of it."""

    def written(self, workspace: Workspace) -> Relation:
        """Return the relation."""
        return self.destination(workspace)[0]

    @abstractmethod
    def read_rows(self, workspace: Workspace) -> DataFrame:
        """Return the rows to write."""

    def mapping_read(self) -> str | None:
        """Return the mapping whose rows are written, if they are those of one."""
        return None

    def is_of_partition(self) -> bool:
        """Return whether a build may write a part of the relation only."""
        return True

    def table_by_path(self, workspace: Workspace) -> tuple[str, str] | None:
        """Return the name of the relation and its location, if it is a Delta table without another name."""
        relation = self.written(workspace)
        location = relation.address(workspace).location if isinstance(relation, DeltaRelation) else None
        return None if location is None else (relation.name, location)

    def mode_of(self, defaults: TargetDefaults) -> OutputMode:
        """Return how it treats existing rows."""
        return self.mode or defaults.output_mode

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run in BUILD, by its build policy."""
        mode = self.mode_of(defaults)
        found = build_dirtiness(
            self.policy(defaults),
            observation,
            each_build=mode.each_build,
            is_partitioned=self.is_of_partition(),
        )
        return with_refusal(found, mode, observation)

    def builds_rows(self, workspace: Workspace) -> bool:
        """Return whether it writes rows in BUILD."""
        return True

    def append(self, workspace: Workspace, defaults: TargetDefaults) -> Append | None:
        """Return that a build adds its rows to those that are there; None if it does not."""
        if not self.builds_rows(workspace) or self.mode_of(defaults) is not OutputMode.APPEND:
            return None
        return Append(self.destination(workspace)[0].appends_once)

    def updates_rows(self, defaults: TargetDefaults) -> bool:
        """Return whether a build keeps the rows that other instances have written into the same places."""
        return self.mode_of(defaults) in (OutputMode.UPDATE, OutputMode.OVERWRITE_DYNAMIC)

    def has_appended(self, workspace: Workspace, append_id: str) -> bool:
        """Return whether the relation holds the rows of an append of that identity."""
        relation, partition = self.destination(workspace)
        return relation.find_append(workspace, append_id, partition) is not None

    def outgoing(self, context: Context) -> DataFrame:
        """Return the rows of the partition to write, in the partitions of Spark that are wanted."""
        relation, partition = self.destination(context.workspace)
        frame = within_partition(self.read_rows(context.workspace), relation.partitions, partition)
        wanted = context.defaults.parallelism if self.parallelism is None else self.parallelism
        if not wanted or wanted < 0:
            return frame
        is_even = context.defaults.rebalance if self.rebalance is None else self.rebalance
        return frame.repartition(wanted) if is_even else frame.coalesce(wanted)

    def _build(self, context: Context) -> Outcome:
        relation, partition = self.destination(context.workspace)
        mode, skipped = effective_mode(
            self.label, relation, context.workspace, partition=partition, mode=self.mode_of(context.defaults)
        )
        skipped = skipped or earlier_append(context, relation, partition=partition, mode=mode)
        if skipped is not None:
            return skipped
        with located_misfits(self.label, relation):
            summary = write_rows(context, relation, self.outgoing(context), partition=partition, mode=mode)
        for note in column_notes(relation, summary):
            context.warn(Phrase(f"{self.label}: ", note))
        return Outcome(metrics={**_metrics(summary), **self._observed(context)})

    def _observed(self, context: Context) -> dict[str, Any]:
        mapping = self.mapping_read()
        return {} if mapping is None else observed_measures(context.workspace, mapping)


class WritingTarget(RowTarget):
    """Creates or migrates a relation, writes a mapping's rows into it, and checks that it has rows.

    Without a mapping the target only creates, checks and removes the relation.
    """

    mapping: Annotated[Input | None, RefersTo.MAPPING] = Declared(
        default=None, description="Mapping whose rows to write."
    )
    mode: OutputModeText | None = Declared(default=None, description="What happens to existing rows.")
    partition: TextMap = Declared(
        default_factory=dict,
        description="Value of each partition column; default: the whole relation.",
    )
    parallelism: int | None = Declared(
        default=None, description="Largest number of files to write; 0: Spark decides."
    )
    rebalance: bool | None = Declared(default=None, description="Distribute the rows evenly over the files.")

    @abstractmethod
    def output(self, workspace: Workspace) -> Relation:
        """Return the relation to write."""

    def phases(self) -> frozenset[Phase]:
        """Return all phases except VALIDATE; without a mapping, CREATE, VERIFY and DESTROY."""
        return _WITHOUT_MAPPING if self.mapping is None else frozenset(Phase) - {Phase.VALIDATE}

    def managed(self, workspace: Workspace) -> ManagedRelation:
        """Return the relation.

        Raises:
            SpecError: The relation can only be read.
        """
        return ManagedRelation.of(self.output(workspace), self.label)

    def stored(self, workspace: Workspace) -> StoredRelation:
        """Return the relation.

        Raises:
            SpecError: The relation holds no rows of its own.
        """
        return StoredRelation.of(self.managed(workspace), self.label)

    def written(self, workspace: Workspace) -> Relation:
        """Return the relation, which holds no rows of its own if it is a view."""
        return self.output(workspace)

    def destination(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition."""
        relation = self.stored(workspace)
        return relation, canonical_partition(relation.partitions, self.partition)

    def read_rows(self, workspace: Workspace) -> DataFrame:
        """Return the rows of the mapping."""
        return workspace.frame(self.mapping or "")  # only targets with a mapping have the phase BUILD

    def mapping_read(self) -> str | None:
        """Return the mapping."""
        return self.mapping

    def is_of_partition(self) -> bool:
        """Return whether a partition is written."""
        return bool(self.partition)

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return what creating the relation reads, or what the mapping reads; in cleanup phases, both."""
        found: frozenset[Resource] = frozenset()
        relation = self.managed(workspace)
        self.check_partition(workspace, relation, self.partition, "partition")
        if phase is Phase.CREATE or phase in _CLEANUP:
            found |= relation.requires(workspace)
        if self.mapping is not None and (phase is Phase.BUILD or phase in _CLEANUP):
            found |= workspace.required(self.mapping)
        if phase is Phase.VERIFY:
            found |= relation.resources(workspace, self.partition)
        return found

    def places(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the relation in CREATE and DESTROY, and the partition in BUILD and TRUNCATE."""
        is_part = phase in (Phase.BUILD, Phase.TRUNCATE)
        return self.managed(workspace).resources(workspace, self.partition if is_part else None)

    def observe(self, context: Context) -> Observation:
        """Return the state of the relation or partition."""
        workspace = context.workspace
        relation = self.managed(workspace)
        observation = relation.observe(workspace, canonical_partition(relation.partitions, self.partition))
        return _with_loss(relation, observation, context)

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run; differences that `NEVER` tolerates do not make it dirty."""
        changes = observation.changes
        if phase is Phase.CREATE and changes and all(isinstance(change, Tolerated) for change in changes):
            named = (Reason(Code.TOLERATED, {"change": change.description}) for change in changes)
            return Dirtiness.no(Reason(Code.PRESENT), *named)
        return super().dirtiness(phase, observation, defaults)

    def builds_rows(self, workspace: Workspace) -> bool:
        """Return whether it writes the rows of a mapping."""
        return self.mapping is not None

    def work(self, context: Context, phase: Phase) -> Outcome:
        """Create or migrate the relation, write its rows, empty or remove it."""
        if phase is Phase.CREATE:
            return self._create(context)
        if phase is Phase.BUILD:
            return self._build(context)
        if phase is Phase.TRUNCATE:
            relation, partition = self.destination(context.workspace)
            relation.truncate(context.workspace, partition)
        else:
            self.managed(context.workspace).destroy(context.workspace)
        return Outcome()

    def _create(self, context: Context) -> Outcome:
        relation, workspace = self.managed(context.workspace), context.workspace
        if relation.observe(workspace).exists is Answer.NO:
            relation.create(workspace)
            if relation.observe(workspace).exists is Answer.NO:
                return Outcome(Status.SKIPPED, reasons=(Reason(Code.MADE_BY_WRITE),))
        else:
            relation.migrate(workspace, allow_data_loss=context.options.permissions.allow_data_loss)
        return Outcome()

    def judge(self, context: Context, found: Observation) -> Outcome:
        """Check that rows were written if there is a mapping.

        Raises:
            VerificationError: There are none, and the policy takes that for a failure.
        """
        if self.mapping is None or found.filled is not Answer.NO:
            return Outcome()
        message, policy = f"{found.subject} is empty", self.verify_policy or context.defaults.verify_policy
        if policy is VerifyPolicy.EMPTY_AS_FAILURE:
            raise VerificationError(f"{self.label}: {message}", remedy=_MAY_BE_EMPTY)
        if policy is VerifyPolicy.EMPTY_AS_SUCCESS:
            return Outcome(reasons=(Reason(Code.NO_ROWS, {"subject": found.subject}),))
        error = Fault(f"{self.label}: {message}", remedy="Run BUILD.", code=VerificationError.code)
        return Outcome(Status.SUCCESS_WITH_ERRORS, error=error)


@contextmanager
def located_misfits(label: str, relation: Relation) -> Iterator[None]:
    """Raise the error of a query that a value failed which does not fit its column as one that names both.

    Raises:
        TargetError: A value does not fit; the rows were not written.
    """
    try:
        yield
    except spark_errors() as error:
        found = fault_error(raised_text(causes_of(error)))
        if found is None or "place" in found.details["fault"]:
            raise
        raise TargetError(
            f"{label}: {found.message} in {relation.label}",
            remedy="Convert it in the mapping, or declare a type that holds it. The rows were not written.",
            details=found.details,
        ) from error


def column_notes(relation: Relation, summary: WriteSummary) -> Iterator[str]:
    """Yield that rows were written without columns, or with columns that their relation does not declare."""
    if names := summary.left_out:
        them = "it" if len(names) == 1 else "them"
        lacks = f"{relation.label} has no column {', '.join(names)}: the rows are written without {them}"
        also = "" if relation.declared_schema is not None else ", with all other columns of the table"
        yield (
            f"{lacks}. Declare {them} in the relation's schema{also}, so that CREATE adds {them}; then build "
            f"what was written without {them} again"
        )
    if names := summary.undeclared:
        they, them = ("it is", "it") if len(names) == 1 else ("they are", "them")
        yield (
            f"{relation.label} does not declare {', '.join(names)}, which its table has: {they} written, but "
            f"what reads the relation does not see {them}. Declare {them} in its schema, or leave {them} out "
            "of the mapping"
        )


def _metrics(summary: WriteSummary) -> dict[str, int]:
    metrics = {"target_records": summary.rows}
    return metrics if summary.version is None else {**metrics, "delta_version": summary.version}


def observed_measures(workspace: Workspace, mapping: str) -> dict[str, Any]:
    """Return what `observe` mappings have measured in the rows that were written."""
    found: dict[str, Any] = {}
    for name, values in workspace.take_measures(mapping).items():
        labels = {"category": "mapping", "kind": "observe", "name": name}
        for measure, value in values.items():
            found.setdefault(measure, []).append({"value": value, "labels": labels})
    return found


ADDED_ALREADY = Reason(Code.ADDED_ALREADY)
"""The reason of a build that adds none."""


def earlier_append(
    context: Context, relation: StoredRelation, *, partition: Partition, mode: OutputMode
) -> Outcome | None:
    """Return the outcome if an earlier attempt has added the target's rows; None if they are to be written.

    If they were removed since, they are to be written again.
    """
    if mode is not OutputMode.APPEND or context.append_id is None:
        return None
    workspace = context.workspace
    found = relation.find_append(workspace, context.append_id, partition)
    if found is None:
        return None
    metrics = {} if found.version is None else {"delta_version": found.version}
    return Outcome(reasons=(ADDED_ALREADY,), metrics=metrics)


def write_rows(
    context: Context,
    relation: StoredRelation,
    frame: DataFrame,
    *,
    partition: Partition,
    mode: OutputMode,
) -> WriteSummary:
    """Write a target's rows; an append carries its identity."""
    workspace = context.workspace
    if mode is not OutputMode.APPEND or context.append_id is None:
        summary = relation.write(workspace, frame, partition=partition, mode=mode)
    else:
        summary = relation.append(workspace, frame, partition=partition, append_id=context.append_id)
    if mode is OutputMode.APPEND:
        reach_failpoint("after_append")
    return summary


def with_refusal(found: Dirtiness, mode: OutputMode, observation: Observation) -> Dirtiness:
    """Return a target's dirtiness with what `ERROR_IF_EXISTS` does about the rows that are there.

    The build policy decides first: most of them leave a filled target as it is, so that nothing fails.
    """
    if mode is not OutputMode.ERROR_IF_EXISTS or observation.filled is not Answer.YES:
        return found
    code = Code.FAILS_ON_ROWS if found.is_to_run else Code.LEAVES_ROWS
    return found.plus(Reason(code, {"mode": mode.value}))
