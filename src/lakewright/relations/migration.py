"""Migration: how an existing table differs from its declaration, and how it is changed to match.

Comparing columns gives steps, each with its SQL and the data that it would lose. Relations that CREATE
brings to their declarations are tables wherever they are, and views.

Source: `lifecycles-and-phases.md`, "Execution Phases" (CREATE migrates existing tables). The migration policy
decides which differences matter, and the migration strategy how they are handled.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.connections.database import Statements
from lakewright.errors import (
    DataLossError,
    Fault,
    LakewrightError,
    MigrationError,
    SpecError,
    TargetError,
)
from lakewright.lake.partition import Partition, canonical_partition
from lakewright.lake.storage_errors import failed_observation
from lakewright.lake.table import MigrationStep
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.resource import Resource
from lakewright.relations.relation import ManagedRelation, StoredRelation
from lakewright.schema.fits import fits
from lakewright.schema.shape import NESTED, plain_type
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spec.models.base import upper
from lakewright.spec.models.fields import Field
from lakewright.spec.suggestions import hint

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


T = TypeVar("T", bound=StrEnum)

_REMEDY = "Declare the table as it is, or set migrationStrategy: ALTER_REPLACE or REPLACE."


class MigrationPolicy(StrEnum):
    """Which differences require a migration."""

    RELAXED = "RELAXED"
    STRICT = "STRICT"


class MigrationStrategy(StrEnum):
    """How differences are handled."""

    NEVER = "NEVER"
    FAIL = "FAIL"
    ALTER = "ALTER"
    ALTER_REPLACE = "ALTER_REPLACE"
    REPLACE = "REPLACE"


MigrationPolicyText = Annotated[MigrationPolicy, BeforeValidator(upper)]
MigrationStrategyText = Annotated[MigrationStrategy, BeforeValidator(upper)]


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of a table that can differ."""

    columns: tuple[Field, ...]
    partition_columns: tuple[str, ...] = ()

    def column(self, name: str) -> Field | None:
        """Return a column by name, regardless of case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Tolerated(TableChange):
    """A difference that the migration strategy ignores."""


@dataclass(frozen=True, slots=True)
class Migration:
    """Steps, and whether they alter the table or replace it with an empty one.

    Attributes:
        refused_remedy: What to do if the strategy does not allow the changes that are needed.
    """

    steps: tuple[MigrationStep, ...]
    strategy: MigrationStrategy
    refused_remedy: str = _REMEDY

    @property
    def is_needed(self) -> bool:
        """Whether there are steps that the strategy does not ignore."""
        return bool(self.steps) and self.strategy is not MigrationStrategy.NEVER

    @property
    def impossible(self) -> tuple[MigrationStep, ...]:
        """The steps that ALTER cannot execute."""
        return tuple(step for step in self.steps if step.sql is None)

    @property
    def replaces(self) -> bool:
        """Whether the table is replaced and its rows are lost."""
        if self.strategy is MigrationStrategy.REPLACE:
            return bool(self.steps)
        return self.strategy is MigrationStrategy.ALTER_REPLACE and bool(self.impossible)

    @property
    def is_refused(self) -> bool:
        """Whether the strategy cannot, or must not, make the changes that are needed."""
        if self.strategy is MigrationStrategy.FAIL:
            return bool(self.steps)
        return self.strategy is MigrationStrategy.ALTER and bool(self.impossible)

    def names_after(self, present: Iterable[str], declared: Iterable[str]) -> tuple[str, ...]:
        """Return the names of a table's columns after CREATE, given those of today and those declared."""
        if self.replaces:
            return tuple(declared)
        if self.is_refused or not self.is_needed:
            return tuple(present)
        removed = {step.removes.lower() for step in self.steps if step.removes is not None}
        return (*(name for name in present if name.lower() not in removed), *declared)

    def check(self, label: str, *, is_filled: bool | None, allow_data_loss: bool) -> None:
        """Check that the migration is possible and permitted.

        Raises:
            MigrationError: The strategy cannot, or must not, make the changes that are needed.
            DataLossError: It would lose data, and that is not permitted.
        """
        if (refusal := self.refusal(label)) is not None:
            raise MigrationError(refusal.message, remedy=refusal.remedy)
        lost = [change.loses for change in self.changes(is_filled=is_filled) if change.loses is not None]
        if lost and is_filled is not False and not allow_data_loss:
            raise data_loss(label, lost)

    def refusal(self, label: str) -> Fault | None:
        """Return why the strategy cannot, or must not, make the changes that are needed; None if it can."""
        if not self.is_refused:
            return None
        refused = self.impossible or self.steps
        return MigrationError(
            f"{label}: migration strategy {self.strategy} cannot bring it to its declaration: "
            + "; ".join(step.description for step in refused),
            remedy=self.refused_remedy,
        ).as_fault()

    def changes(self, *, is_filled: bool | None) -> tuple[TableChange, ...]:
        """Return the changes that CREATE would make, for the plan; with NEVER, those that it ignores."""
        if self.strategy is MigrationStrategy.NEVER:
            return tuple(Tolerated(step.description) for step in self.steps)
        if not self.replaces:
            return tuple(TableChange(step.description, step.loses) for step in self.steps)
        lost = None if is_filled is False else "all its rows"
        head = TableChange("replace the table with an empty one", lost, empties=True)
        return (head, *(TableChange(step.description) for step in self.steps))


def data_loss(label: str, lost: Sequence[str]) -> DataLossError:
    """Return the error of a migration that would lose data, which is not permitted."""
    return DataLossError(
        f"{label}: its migration would lose {', '.join(lost)}", details={"loses": list(lost)}
    )


def configured(config: Mapping[str, str], name: str, default: T) -> T:
    """Return the policy or strategy of relations that declare none."""
    kind = type(default)
    key = f"lakewright.default.relation.{name}"
    try:
        return kind(config[key].strip().upper()) if key in config else default
    except ValueError as error:
        message = f"configuration {key}: {config[key]!r} is unknown"
        raise SpecError.of(message, remedy=hint(config[key], kind)) from error


def find_steps(
    present: Shape, declared: Shape, policy: MigrationPolicy, statements: Statements | None = None
) -> tuple[MigrationStep, ...]:
    """Return the differences as steps, in an order in which they can be executed.

    Args:
        present: The table as it is.
        declared: The table as it shall be.
        policy: Which differences count.
        statements: The statements of its place; default: what follows `ALTER TABLE …` for Delta tables.
    """
    place = statements or OF_DELTA
    renamed = {
        former.name: field
        for field in declared.columns
        if (former := find_former(field, present)) is not None
    }
    steps = [
        MigrationStep(
            f"rename column {former} to {field.name}",
            place.rename(former, field.name),
            needs_mapping=True,
            removes=former,
        )
        for former, field in renamed.items()
    ]
    if policy is MigrationPolicy.STRICT:
        kept = {name.lower() for name in (*renamed, *(field.name for field in declared.columns))}
        steps += [_drop(place, field) for field in present.columns if field.name.lower() not in kept]
    for field in declared.columns:
        actual = present.column(field.name) or find_former(field, present)
        steps += [_add(place, field)] if actual is None else _alter(place, actual, field, policy)
    if [name.lower() for name in present.partition_columns] != [
        name.lower() for name in declared.partition_columns
    ]:
        steps.append(_repartition(present, declared))
    return tuple(steps)


def find_former(field: Field, present: Shape) -> Field | None:
    """Return the existing column to rename to this one, if there is one and this one does not exist yet."""
    if field.renamed_from is None or present.column(field.name) is not None:
        return None
    return present.column(field.renamed_from)


def _drop(place: Statements, field: Field) -> MigrationStep:
    column = f"column {field.name}"
    return MigrationStep(
        f"drop {column}", place.drop(field.name), loses=column, needs_mapping=True, removes=field.name
    )


def _add(place: Statements, field: Field) -> MigrationStep:
    not_null = "" if field.nullable else " NOT NULL"
    return MigrationStep(f"add column {field.name} {field.type.ddl}{not_null}", place.add(field))


def _alter(
    place: Statements, actual: Field, field: Field, policy: MigrationPolicy
) -> Iterator[MigrationStep]:
    is_strict = policy is MigrationPolicy.STRICT
    stored = place.stored(field.type)
    if actual.type != stored and (is_strict or not place.holds(stored, actual.type)):
        change = f"change column {field.name} from {actual.type.ddl} to {stored.ddl}"
        yield MigrationStep(change, place.retype(actual, field), widens=True)
    if field.nullable and not actual.nullable:
        yield MigrationStep(f"allow nulls in column {field.name}", place.set_nullable(field))
    elif is_strict and actual.nullable and not field.nullable:
        yield MigrationStep(f"forbid nulls in column {field.name}", place.set_nullable(field))
    if is_strict and (actual.description or "") != (field.description or ""):
        yield MigrationStep(f"change the comment of column {field.name}", place.comment(field))


def _add_sql(field: Field) -> str | None:
    comment = f" COMMENT {text_sql(field.description)}" if field.description else ""
    added = f"ADD COLUMNS ({name_sql(field.name)} {field.type.ddl}{comment})"
    return added if field.nullable else None


def _retype_sql(actual: Field, field: Field) -> str | None:
    if isinstance(actual.type, NESTED) or not fits(actual.type, field.type):
        return None
    return f"ALTER COLUMN {name_sql(field.name)} TYPE {plain_type(field.type).ddl}"


OF_DELTA = Statements(
    rename=lambda old, new: f"RENAME COLUMN {name_sql(old)} TO {name_sql(new)}",
    drop=lambda name: f"DROP COLUMN {name_sql(name)}",
    add=_add_sql,
    retype=_retype_sql,
    set_nullable=lambda field: (
        f"ALTER COLUMN {name_sql(field.name)} DROP NOT NULL" if field.nullable else None
    ),
    comment=lambda field: f"ALTER COLUMN {name_sql(field.name)} COMMENT {text_sql(field.description or '')}",
)
"""What follows `ALTER TABLE …` for Delta tables."""


def _repartition(present: Shape, declared: Shape) -> MigrationStep:
    before = ", ".join(present.partition_columns) or "nothing"
    after = ", ".join(declared.partition_columns) or "nothing"
    return MigrationStep(f"partition by {after} instead of {before}", None)


class MigratedRelation(ManagedRelation):
    """A relation that CREATE compares with its declaration, and whose differences it handles as declared."""

    refused_remedy: ClassVar[str] = _REMEDY
    """What to do if the strategy does not allow the changes that are needed."""

    is_made_anew: ClassVar[bool] = False
    """Whether CREATE makes it again even if it does not differ."""

    migration_policy: MigrationPolicyText | None = Declared(
        default=None, description="Differences that require a migration."
    )
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="What a migration does."
    )

    def policy(self, workspace: Workspace) -> MigrationPolicy:
        """Return the policy that is declared, or the project's."""
        return self.migration_policy or configured(
            workspace.project.config, "migrationPolicy", MigrationPolicy.RELAXED
        )

    def strategy(self, workspace: Workspace) -> MigrationStrategy:
        """Return the strategy that is declared, or the project's."""
        return self.migration_strategy or configured(
            workspace.project.config, "migrationStrategy", MigrationStrategy.ALTER
        )

    @abstractmethod
    def found(self, workspace: Workspace) -> Any | None:
        """Return the table or view as it is, or None if there is none."""

    @abstractmethod
    def steps(self, workspace: Workspace, found: Any) -> tuple[MigrationStep, ...]:
        """Return what makes the table or view that was found the declared one."""

    def is_filled(self, workspace: Workspace, found: Any, partition: Partition) -> bool | None:
        """Return whether what was found, or a partition of it, has rows; None if that is unknown."""
        return None

    @abstractmethod
    def alter(self, workspace: Workspace, steps: Sequence[MigrationStep]) -> None:
        """Make the changes of steps."""

    def replace(self, workspace: Workspace) -> None:
        """Replace the table by an empty one that is as declared."""
        self.destroy(workspace)
        self.create(workspace)

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether it exists, has rows and matches its declaration."""
        subject = str(self._resource(workspace, partition))
        wanted = canonical_partition(self.partitions, partition or {})
        try:
            if (found := self.found(workspace)) is None:
                return Observation(subject, exists=Answer.NO, filled=Answer.NO)
            migration = self._migration(workspace, found)
            is_filled = self.is_filled(workspace, found, wanted)
            # An empty partition says nothing about the others.
            others_count = migration.replaces and wanted and not is_filled
            whole = self.is_filled(workspace, found, {}) if others_count else is_filled
        except LakewrightError as error:
            return failed_observation(subject, error)
        return Observation(
            subject,
            exists=Answer.YES,
            filled=Answer.of(is_filled),
            changes=migration.changes(is_filled=whole),
            refusal=migration.refusal(self.label),
        )

    def _resource(self, workspace: Workspace, partition: Partition | None = None) -> Resource:
        return max(self.resources(workspace, partition), key=lambda each: each.category)

    def _migration(self, workspace: Workspace, found: Any) -> Migration:
        return Migration(self.steps(workspace, found), self.strategy(workspace), self.refused_remedy)

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Migrate the table or view to its declaration according to its strategy.

        Raises:
            MigrationError: The strategy does not allow it.
            DataLossError: Rows or columns would be lost, and that is not permitted.
        """
        if (found := self.found(workspace)) is None:
            return
        migration = self._migration(workspace, found)
        if migration.strategy is MigrationStrategy.NEVER or not (migration.steps or self.is_made_anew):
            return
        is_filled = self.is_filled(workspace, found, {})
        migration.check(self.label, is_filled=is_filled, allow_data_loss=allow_data_loss)
        if migration.replaces:
            self.replace(workspace)
        else:
            self.alter(workspace, migration.steps)


class MigratedTable(MigratedRelation, StoredRelation):
    """A table whose columns are compared with its declaration."""

    def names_after(self, workspace: Workspace, *, is_created: bool) -> tuple[str, ...] | None:
        """Return the names of its columns after CREATE; None if they are not known."""
        found = self.found(workspace)
        declared = self.declared(workspace) if is_created else None
        names = None if declared is None else tuple(each.name for each in declared)
        if found is None:
            return names
        own = tuple(each.name for each in found.columns)
        return own if names is None else self._migration(workspace, found).names_after(own, names)

    def existing(self, workspace: Workspace) -> Any:
        """Return the table as it is.

        Raises:
            TargetError: There is none.
        """
        found = self.found(workspace)
        if found is None:
            raise TargetError(
                f"{self.label}: there is no table {self._resource(workspace).name}",
                remedy="Run the phase that creates it, or check its declaration; without a schema, its first "
                "write creates it.",
            )
        return found

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns, or those of the table."""
        declared = self.declared(workspace)
        columns: tuple[Field, ...] = self.existing(workspace).columns if declared is None else declared
        return columns


REPLACES_TABLE = MigrationStep("replace the table with a view", None, loses="the table")
"""The step of a view in whose place there is a table, which a person has to remove."""


class MigratedView(MigratedRelation):
    """A view whose query is compared with its declaration."""

    refused_remedy: ClassVar[str] = "Remove what is there, or set migrationStrategy: REPLACE."

    migration_policy: MigrationPolicyText | None = Declared(
        default=None,
        description="Without effect: a view differs if its query does.",
    )
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="NEVER and FAIL keep a view that differs, others replace it."
    )

    def strategy(self, workspace: Workspace) -> MigrationStrategy:
        """Return NEVER or FAIL, or ALTER for all others."""
        declared = super().strategy(workspace)
        is_kept = declared in (MigrationStrategy.NEVER, MigrationStrategy.FAIL)
        return declared if is_kept else MigrationStrategy.ALTER

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that must exist before it can be created."""
        return super().requires(workspace) | self.computed_from(workspace)

    def alter(self, workspace: Workspace, steps: Sequence[MigrationStep]) -> None:
        """Make the view as it is declared."""
        self.create(workspace)


def made_again(description: str) -> MigrationStep:
    """Return the step that creates a view again, in place of the one that is there."""
    return MigrationStep(description, "CREATE VIEW")
