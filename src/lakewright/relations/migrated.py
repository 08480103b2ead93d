"""Relations that CREATE brings to their declarations: tables wherever they are, and views."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import LakewrightError, MigrationError
from lakewright.lake.damaged_log import failed_observation
from lakewright.lake.partition import Partition, canonical_partition
from lakewright.lake.table import MigrationStep
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.relations.migration import (
    Migration,
    MigrationPolicy,
    MigrationPolicyText,
    MigrationStrategy,
    MigrationStrategyText,
    Tolerated,
    default_policy,
    default_strategy,
)
from lakewright.relations.relation import ManagedRelation, StoredRelation
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["MigratedRelation", "MigratedTable", "MigratedView", "Present"]


class MigratedRelation(ManagedRelation):
    """A relation of which a project declares which differences matter, and what is done about them."""

    migration_policy: MigrationPolicyText | None = Declared(
        default=None, description="Which differences require a migration: RELAXED or STRICT."
    )
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="NEVER, FAIL, ALTER, ALTER_REPLACE or REPLACE."
    )

    def policy(self, workspace: Workspace) -> MigrationPolicy:
        """Return the policy that is declared, or the project's."""
        return self.migration_policy or default_policy(workspace.project.config)

    def strategy(self, workspace: Workspace) -> MigrationStrategy:
        """Return the strategy that is declared, or the project's."""
        return self.migration_strategy or default_strategy(workspace.project.config)

    def planned(self, workspace: Workspace, changes: Sequence[TableChange]) -> tuple[TableChange, ...]:
        """Return changes as a plan has them: those that the strategy NEVER ignores as tolerated."""
        is_ignored = self.strategy(workspace) is MigrationStrategy.NEVER
        return tuple(Tolerated(each.description) if is_ignored else each for each in changes)


@dataclass(frozen=True, slots=True)
class Present:
    """A table that exists.

    Attributes:
        columns: Its columns.
        migration: What makes it the declared one.
        is_filled: Returns whether it, or a partition of it, has rows; None if that is not known.
    """

    columns: tuple[Field, ...]
    migration: Migration
    is_filled: Callable[[Partition], bool | None]


class MigratedTable(MigratedRelation, StoredRelation):
    """A table whose columns are compared with its declaration."""

    @abstractmethod
    def present(self, workspace: Workspace) -> Present | None:
        """Return the table as it is, or None if there is none."""

    @abstractmethod
    def replace(self, workspace: Workspace) -> None:
        """Replace the table by an empty one that is as declared."""

    @abstractmethod
    def alter(self, workspace: Workspace, steps: Sequence[MigrationStep]) -> None:
        """Run the statements of steps."""

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the table exists, has rows and matches its declaration."""
        subject = str(max(self.resources(workspace, partition), key=lambda each: each.category))
        wanted = canonical_partition(self.partitions, partition or {})
        try:
            if (present := self.present(workspace)) is None:
                return Observation(subject, exists=Answer.NO, filled=Answer.NO)
            is_filled = present.is_filled(wanted)
            # An empty partition says nothing about the others.
            others_count = present.migration.replaces and wanted and not is_filled
            whole = present.is_filled({}) if others_count else is_filled
        except LakewrightError as error:
            return failed_observation(subject, error)
        return Observation(
            subject,
            exists=Answer.YES,
            filled=Answer.of(is_filled),
            changes=present.migration.changes(is_filled=whole),
            refusal=present.migration.refusal(self.label),
        )

    def names_after(self, workspace: Workspace, *, is_created: bool) -> tuple[str, ...] | None:
        """Return the names of its columns after CREATE; None if they are not known."""
        present = self.present(workspace)
        declared = self.declared(workspace) if is_created else None
        names = None if declared is None else tuple(each.name for each in declared)
        if present is None:
            return names
        own = tuple(each.name for each in present.columns)
        return own if names is None else present.migration.names_after(own, names)

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Migrate the table to its declaration according to its strategy.

        Raises:
            MigrationError: The strategy does not allow it.
            DataLossError: Rows or columns would be lost, and that is not permitted.
        """
        present = self.present(workspace)
        if present is None or not present.migration.is_needed:
            return
        migration = present.migration
        migration.check(self.label, is_filled=present.is_filled({}), allow_data_loss=allow_data_loss)
        if migration.replaces:
            self.replace(workspace)
        else:
            self.alter(workspace, migration.steps)


class MigratedView(MigratedRelation):
    """A view whose query is compared with its declaration."""

    migration_policy: MigrationPolicyText | None = Declared(
        default=None,
        description="Accepted for Flowman's projects: a view differs if its query does, in both policies.",
    )
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="NEVER and FAIL keep a view that differs; all others replace it."
    )

    def view_changes(self, difference: str | None, *, is_view: bool) -> tuple[TableChange, ...]:
        """Return the changes that make what is there the declared view.

        Args:
            difference: What differs in the view, as a change; None if nothing does.
            is_view: Whether it is a view, not a table.
        """
        if not is_view:
            return (TableChange("replace the table with a view", "the table"),)
        return () if difference is None else (TableChange(difference),)

    def refused(
        self, workspace: Workspace, name: object, changes: Sequence[TableChange]
    ) -> MigrationError | None:
        """Return why CREATE must not make the changes; None if it may.

        Args:
            workspace: The names of the instance.
            name: The view as messages name it.
            changes: What differs; a change that loses something replaces a table.
        """
        strategy = self.strategy(workspace)
        is_table = bool(changes) and changes[0].loses is not None
        if not changes or not (
            strategy is MigrationStrategy.FAIL or (is_table and strategy is not MigrationStrategy.NEVER)
        ):
            return None
        return MigrationError(
            f"{self.label}: {name} differs from its declaration: {changes[0].description}",
            remedy="Remove what is there, or set migrationStrategy: REPLACE.",
        )
