"""The `delta` relation: a Delta table at a location or in the catalog."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError, TargetError
from lakewright.lake.commit import (
    LandedCommit,
    Token,
    content_of_build,
    read_table_at,
)
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.delta_log import TableState
from lakewright.lake.delta_sql import Clause
from lakewright.lake.history import EffectiveCommit, find_effective
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.partition import (
    Partition,
    canonical_partition,
    partition_sql,
    typed_partition,
)
from lakewright.lake.table import (
    MigrationStep,
    alter_table,
    create_table,
    drop_entry_alone,
    drop_table,
    truncate_table,
)
from lakewright.plan.observation import Answer
from lakewright.plan.resource import Resource
from lakewright.relations.delta_write import (
    Merge,
    TableWrite,
    into_partition,
    same_key,
    with_unique_keys,
)
from lakewright.relations.migration import MigratedTable, Shape, find_steps
from lakewright.relations.relation import OutputMode, WriteSummary
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import TextMap, Texts
from lakewright.spec.models.fields import Field
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class DeltaRelation(MigratedTable):
    """A Delta table; each write is one commit."""

    keeps_past: ClassVar[bool] = True

    appends_once: ClassVar[bool] = True

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode)

    location: str | None = Declared(
        default=None,
        description="Folder; with `table`, of the table's files.",
    )
    database: str | None = Declared(default=None, description="Database in the catalog.")
    table: str | None = Declared(default=None, description="Name in the catalog.")
    options: TextMap = Declared(default_factory=dict, description="Options for Delta's reader and writer.")
    properties: TextMap = Declared(
        default_factory=dict, description="Properties of a table that Lakewright creates."
    )
    merge_key: Texts = Declared(default=(), description="Columns that identify a row in mode UPDATE.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.location is None and self.table is None:
            raise ValueError("a delta relation needs `location`, `table` or both")
        return self

    def address(self, workspace: Workspace) -> Address:
        """Return the location of the table; one with a name in the catalog is known by it."""
        if self.table is not None:
            return Address(name=f"{self.database}.{self.table}" if self.database else self.table)
        return Address(location=workspace.resolve_location(self.location or ""))

    def _place(self, workspace: Workspace) -> str | None:
        """Return the folder of a table that has a name in the catalog too."""
        if self.table is None or self.location is None:
            return None
        return workspace.resolve_location(self.location)

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the address of the table in SQL."""
        return self.address(workspace).sql

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the table, or one of its partitions."""
        address = self.address(workspace)
        values = canonical_partition(self.partitions, partition or {})
        if address.location is not None:
            return frozenset({Resource.file(address.location, values)})
        place = self._place(workspace)
        files = [] if place is None else [Resource.file(place, values)]
        return frozenset({Resource.table(str(address.name), values), *files})

    def found(self, workspace: Workspace) -> TableState | None:
        """Return the table as it is, or None if there is none; only catalog tables need Spark."""
        state = observe_table(workspace.lake, self.address(workspace))
        return state if state.exists else None

    def steps(self, workspace: Workspace, found: TableState) -> tuple[MigrationStep, ...]:
        """Return what makes the table the declared one."""
        declared = self.declared(workspace)
        if declared is None:
            return ()
        present = Shape(found.columns, found.partition_columns)
        wanted = Shape(declared, tuple(each.name for each in self.partitions))
        return find_steps(present, wanted, self.policy(workspace))

    def is_filled(self, workspace: Workspace, found: TableState, partition: Partition) -> bool | None:
        """Return whether the table, or a partition of it, has rows; None if the log does not show it."""
        if not partition or found.is_empty:
            return None if found.is_empty is None else not found.is_empty
        has_files = found.has_files(typed_partition(self.partitions, partition))
        return not self.read(workspace, [partition]).isEmpty() if has_files is None else has_files

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the table, with the declared columns if there are any.

        Raises:
            TargetError: The table does not exist.
        """
        self.existing(workspace)
        address, past = self.address(workspace), workspace.lake.past
        if past is None:
            frame = read_table(workspace.spark, address)
        else:
            frame = read_table_at(workspace.lake, workspace.spark, address, past.at)
        return self.without_undeclared(workspace, self.within(frame, partitions))

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows in one commit; with a partition, all of them go there regardless of their values."""
        return self._write(workspace, frame, partition=partition, mode=mode)

    def append(
        self,
        workspace: Workspace,
        frame: DataFrame,
        *,
        partition: Partition,
        append_id: str,
    ) -> WriteSummary:
        """Append the rows; Delta skips the commit if another process has made it meanwhile."""
        found = self._effective(workspace, append_id, partition)
        number = found.number if found.commit is not None else found.number + 1
        text = Token(append_id, number, content_of_build()).text
        token = {"txnAppId": append_id, "txnVersion": str(number), "userMetadata": text}
        options = {**token, **self.options}
        return self._write(workspace, frame, partition=partition, mode=OutputMode.APPEND, options=options)

    def find_append(self, workspace: Workspace, append_id: str, partition: Partition) -> LandedCommit | None:
        """Return the append of that identity; None if there is none, or its rows are not there any more."""
        return self._effective(workspace, append_id, partition).commit

    def _effective(self, workspace: Workspace, append_id: str, partition: Partition) -> EffectiveCommit:
        address = self.address(workspace)
        if not observe_table(workspace.lake, address).exists:
            return EffectiveCommit(0, None)
        found = find_effective(workspace.lake, address, append_id, partition)
        if found.commit is None or self.observe(workspace, partition).filled is not Answer.NO:
            return found
        return replace(found, commit=None)

    def _write(
        self,
        workspace: Workspace,
        frame: DataFrame,
        *,
        partition: Partition,
        mode: OutputMode,
        options: Mapping[str, str] | None = None,
    ) -> WriteSummary:
        write = TableWrite(
            workspace,
            address=self.address(workspace),
            partitions=self.partitions,
            declared=self.declared(workspace),
            options=self.options if options is None else options,
            partition=canonical_partition(self.partitions, partition),
            merge_key=self.update_key() if mode is OutputMode.UPDATE else (),
        )
        self.create(workspace, self.brought(frame) if self._place(workspace) else None)
        with self._committing(workspace):
            return write.run(frame, mode)

    @contextmanager
    def _committing(self, workspace: Workspace) -> Iterator[None]:
        """Hold the lock of the table, while this thread may commit to it."""
        with commit_lock(self.address(workspace), f"process {os.getpid()}"):
            workspace.lake.check_commit()
            yield

    def merge(
        self,
        workspace: Workspace,
        frame: DataFrame,
        *,
        key: Sequence[str],
        condition: str | None,
        clauses: Sequence[Clause],
        partition: Partition,
        warn: Callable[[str], None],
    ) -> dict[str, int]:
        """Merge rows by clauses in one commit, and return how many were inserted, updated and deleted.

        Rows match by `condition`, otherwise by `key`, otherwise by the relation's own key. Without a declared
        schema, the first rows decide the columns of the table. `warn` gets a text on columns that it lacks.
        """
        frame = into_partition(frame, self.partitions, partition)
        by = () if condition else key or self.update_key()
        merge = Merge(condition or same_key(by), clauses)
        own = merge.written_columns(frame.columns, [each.name for each in self.partitions])
        self.create(workspace, self.brought(frame.select(*map(name_sql, own))))
        if unused := merge.unused_columns(frame.columns, self.existing(workspace).names):
            them = "it" if len(unused) == 1 else "them"
            warn(
                f"{self.label} has no column {', '.join(unused)}: the merge leaves {them} out. "
                f"Declare {them} in the relation's schema, so that CREATE adds {them}, "
                f"or drop {them} from the mapping"
            )
        with self._committing(workspace):
            frame = with_unique_keys(frame, by, self.label, merge.inserted_sql) if by else frame
            return merge.run(workspace.spark, self.address(workspace), frame)

    def update_key(self) -> tuple[str, ...]:
        """Return the columns by which rows are updated.

        Raises:
            SpecError: Nothing declares them.
        """
        key = self.merge_key or (self.declared_schema.primary_key() if self.declared_schema else ())
        if not key:
            raise SpecError.of(
                f"{self.label} has no key to update rows by",
                remedy="Add a `mergeKey` to it, or a `primaryKey` to its schema.",
            )
        return (*key, *(each.name for each in self.partitions if each.name not in key))

    def create(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> None:
        """Create the table; without a declared schema, the first write does so, with the columns it brings.

        The same holds if the schema is that of a mapping that cannot be built yet.
        """
        fields = self._known_columns(workspace) or brought
        if observe_table(workspace.lake, self.address(workspace)).exists:
            return
        if fields is None:
            drop_entry_alone(workspace.lake, self.address(workspace))
        else:
            self._create(workspace, fields, place=self._place(workspace))

    def _create(
        self,
        workspace: Workspace,
        fields: Sequence[Field],
        *,
        place: str | None = None,
        replaces: bool = False,
    ) -> None:
        create_table(
            workspace.lake,
            self.address(workspace),
            fields,
            partition_columns=[each.name for each in self.partitions],
            properties=self.properties,
            comment=self.description,
            place=place,
            replaces=replaces,
        )

    def _known_columns(self, workspace: Workspace) -> tuple[Field, ...] | None:
        try:
            return self.declared(workspace)
        except TargetError:
            if self.declared_schema is None or not self.declared_schema.mappings():
                raise
            return None

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Delete the rows of the table, or of a partition, in one commit."""
        address = self.address(workspace)
        if not observe_table(workspace.lake, address).exists:
            return
        wanted = canonical_partition(self.partitions, partition or {})
        with self._committing(workspace):
            truncate_table(workspace.lake, address, partition_sql(self.partitions, wanted), wanted)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the table with its rows and history."""
        drop_table(workspace.lake, self.address(workspace))
        if place := self._place(workspace):
            # The catalog keeps the files of a table at a declared location.
            drop_table(workspace.lake, Address(location=place))

    def replace(self, workspace: Workspace) -> None:
        """Replace the table by an empty one that is as declared, in one commit."""
        with self._committing(workspace):
            self._create(workspace, self.declared(workspace) or (), replaces=True)

    def alter(self, workspace: Workspace, steps: Sequence[MigrationStep]) -> None:
        """Run the statements of steps, each in a commit of its own."""
        with self._committing(workspace):
            alter_table(workspace.lake, self.address(workspace), steps)
