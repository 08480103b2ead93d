"""One slice with its table, ready for a strategy, and the commit of the strategy's changes.

Source: `processing-strategies.md`, "Common Processing Pipeline".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import CommitConflict, LeaseLost
from lakewright.lake.commit import LandedCommit, Token, carrying_token, find_commit
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.delta_log import DECLARED_LENGTH, TableState
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import local_table_path, observe_table, read_table
from lakewright.lake.table import ensure_database, set_properties
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.places import Address
from lakewright.strategies.bad_rows import BadRow
from lakewright.strategies.drift import Alignment, Drift
from lakewright.strategies.slice_statistics import SliceStatistics, range_condition, value_sql
from lakewright.strategies.summary import Summary
from lakewright.strategies.table_properties import declared_properties, own_properties
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.lake.lake import Lake
    from lakewright.spark.delta_files import DeltaFiles
    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice
    from lakewright.transform.system_columns import SystemColumns


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A request to process one slice, or to look at one.

    Attributes:
        slice_name: Name of the slice, for its rows.
        strategy: The strategy to apply.
        at: The processing time.
        slice_size: Bytes of the slice.
        token: Numbers the commit to the table; its content is stored in the commit with the metrics.
        check_lock: Raises `LeaseLost` if this run no longer holds the slice's lock, or `SliceError` if the
            slice has changed.
        holder: This process and its run, shown to those who wait for the table.
        lower_bounds: Watermark column, as declared, to the lower bound of the window of delete inference;
            columns without a previous watermark are left out.
        permissions: The permissions of the run.
        is_late: Whether a later slice is already processed.
        may_lack_columns: Whether the slice may lack columns that are not optional: it was processed before,
            with the same content.
    """

    slice_name: str
    strategy: Strategy
    at: datetime
    slice_size: int = 0
    token: Token = field(default_factory=lambda: Token("", 0))
    check_lock: Callable[[], None] = lambda: None
    holder: str = ""
    lower_bounds: Mapping[str, object] = field(default_factory=dict)
    permissions: Permissions = NO_PERMISSIONS
    is_late: bool = False
    may_lack_columns: bool = False


@dataclass(frozen=True, slots=True)
class SliceLoad:
    """A slice that is prepared for its table, and the table as it is before the commit.

    Attributes:
        session: A Spark session in ANSI mode, for this load alone.
        alignment: How the slice's columns fit the table's; None if there is no table yet.
        bad_rows: Rows of the slice that are put aside.
        files: The table's files, by whose places rows are found again; None if only Delta's reader has them.
        table: The table's columns as Spark reads them; None if there is no table yet.
        properties: Table properties to set with the commit, besides those that follow from the slice.
    """

    lake: Lake
    session: SparkSession
    entity: Entity
    request: LoadRequest
    state: TableState
    prepared: PreparedSlice
    statistics: SliceStatistics = field(default_factory=SliceStatistics)
    alignment: Alignment | None = None
    files: DeltaFiles | None = None
    table: StructType | None = None
    bad_rows: tuple[BadRow, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> Address:
        """The table."""
        return self.entity.places(self.lake.settings).silver

    @property
    def system(self) -> SystemColumns:
        """The names of the system columns."""
        return self.prepared.system

    @property
    def is_first(self) -> bool:
        """Whether the table does not exist yet, or has no rows."""
        return not self.state.exists or bool(self.state.is_empty)

    def open_condition(self, *alias: str) -> str:
        """Return the condition of rows of the table that can change: of Historic, current versions."""
        is_historic = self.request.strategy is Strategy.HISTORIC
        return f"{name_sql(*alias, self.system.valid_to)} is null" if is_historic else "true"

    def summary(self, **counts: int) -> Summary:
        """Return the summary of the slice with its own counts and those of what was done with its rows."""
        strategy = self.request.strategy
        return Summary(
            strategy,
            records_in_slice=self.statistics.records + len(self.bad_rows),
            superseded=self.statistics.superseded,
            quarantined=len(self.bad_rows),
            is_first=not self.state.exists if strategy is Strategy.FULL else self.is_first,
            **counts,
        )

    def content(self, summary: Summary) -> dict[str, Any]:
        """Return what the commit of the slice holds of it."""
        return {**self.request.token.content, **self.facts(summary)}

    def facts(self, summary: Summary) -> dict[str, Any]:
        """Return what is recorded of the slice: its watermarks, its metrics, and its drift if it has one."""
        drift = {"drift": self.drift.as_json()} if self.drift else {}
        return {"watermarks": self.statistics.marks, "metrics": summary.as_json(), **drift}

    @property
    def fit(self) -> Alignment:
        """How the slice's columns fit those of the existing table."""
        if self.alignment is None:
            raise RuntimeError("there is no table that the slice could fit")
        return self.alignment

    @property
    def drift(self) -> Drift | None:
        """How the slice's columns differ from the table's; None if they do not."""
        return self.alignment.drift if self.alignment is not None and self.alignment.drift else None

    def target(self) -> DataFrame:
        """Return the rows of the table, with `PLACE` if its files are known."""
        return read_table(self.session, self.address) if self.files is None else self.files.rows()

    @property
    def matched(self) -> tuple[str, ...]:
        """Names of the table's columns by whose values its rows are matched with rows of the slice.

        They are those of the business key, if their values tell records apart as well as the primary key: a
        hash of 64 digits takes longer to compute, send and look up.
        """
        names, slice_ = self.prepared.identity, self.prepared.frame.schema
        by_key, settings = (self.system.key,), self.entity.settings
        # The primary key treats null as a value like others, a join does not. Deletes are inferred by it.
        if names == by_key or settings.null_keys == "allow" or settings.delete_missing:
            return by_key
        known = {} if self.table is None else {each.name.lower(): each for each in self.table.fields}
        found = [(known.get(name.lower()), slice_[name].dataType) for name in names]
        same = [own.name for own, kind in found if own is not None and own.dataType == kind]
        return tuple(same) if len(same) == len(names) and self._padded.isdisjoint(same) else by_key

    @property
    def has_table_values(self) -> bool:
        """Whether all values that the source hash is made of are in the table, in the same types.

        Then rows are equal if these values are. It is not so if the slice and the table do not have the same
        columns, or if the table was made by a hash of values as the source had them.
        """
        prepared, table = self.prepared, self.table
        is_removed = self.drift is not None and self.drift.removed
        if table is None or is_removed or not prepared.form.is_of_typed_values:
            return False
        known = {each.name.lower(): each.dataType for each in table.fields if each.name not in self._padded}
        own = {each.name.lower(): each.dataType for each in prepared.frame.schema.fields}
        names = (prepared.names[each.name].lower() for each in prepared.hashed)
        return all(name in own and known.get(name) == own[name] for name in names)

    @property
    def _padded(self) -> frozenset[str]:
        """Names of the table's columns that may give values back with other spaces than were written."""
        fields = () if self.table is None else self.table.fields
        return frozenset(each.name for each in fields if DECLARED_LENGTH in each.metadata)

    def aligned(self, frame: DataFrame) -> DataFrame:
        """Return rows of the slice with the columns of the existing table."""
        return self.fit.applied(frame)

    @property
    def column_notes(self) -> tuple[str, ...]:
        """A text for each difference between the slice's columns and those of the table and the entity."""
        lacking = (f"the slice lacks the configured column {name!r}" for name in self.prepared.lacking)
        notes = (f"{each}, as when first processed: it is null in its rows" for each in lacking)
        return (*notes, *(self.drift.messages if self.drift else ()))

    @property
    def sequence(self) -> str | None:
        """The column of `sequence_by`, by its name in the table; None without one."""
        wanted = self.prepared.sequence
        return (
            wanted if wanted is None or self.alignment is None else find_name(self.alignment.columns, wanted)
        )

    def target_sequence(self, sequence: str) -> str:
        """Return SQL of the value that rows of the table have of that column."""
        return "null" if self.state.column(sequence) is None else name_sql(sequence)

    def latest_sequence(self, sequence: str) -> str:
        """Return SQL of the greatest value that the slice has of that column, in the type of the table's."""
        own, wanted = self.state.column(sequence), self.prepared.sequence or sequence
        kind = type_of(self.prepared.frame.schema[wanted].dataType) if own is None else own.type
        latest = self.statistics.latest
        return f"cast(null as {kind.ddl})" if latest is None else value_sql(latest, kind.ddl)

    @property
    def keeps_tombstones(self) -> bool:
        """Whether a record that arrives deleted gets a row, deleted, if the table has none of it.

        With `sequence_by`, no older row of the record may bring it back.
        """
        return self.prepared.shape is Strategy.MERGE and self.sequence is not None

    def as_tombstones(self, frame: DataFrame) -> DataFrame:
        """Return rows of the slice of which those that arrive deleted have only what tells them apart.

        That are the system columns, the business key, the columns of partitions, and that of `sequence_by`.
        """
        deleted, sequence = name_sql(self.system.deleted), self.prepared.sequence
        own = (*self.prepared.key_columns, *self.prepared.partitions, *self.state.partition_columns)
        kept = {name.lower() for name in (*own, *(() if sequence is None else (sequence,)))}
        emptied = {name.lower() for name in self.prepared.names.values()} - kept
        columns = ((name, name_sql(name)) for name in frame.columns)
        return frame.selectExpr(
            *(
                f"if({deleted}, null, {sql}) as {sql}" if name.lower() in emptied else sql
                for name, sql in columns
            )
        )

    def match_condition(self, alias: str) -> str:
        """Return the condition that every row of the table meets which matches a row of the slice."""
        retyped = self.fit.drift.retyped
        # A value of another type may lie outside the range of the table's type, and so may a padded one.
        left_out = {*retyped, *self._padded}
        types = {column.name: column.type.ddl for column in self.state.columns if column.name not in left_out}
        return range_condition(self.statistics.ranges, types, alias=alias)

    def commit(self, summary: Summary, write: Callable[[], None]) -> Summary:
        """Write in one commit that carries token and summary; return the summary with the commit's version.

        Args:
            summary: Counts of the slice; they are checked before anything is written.
            write: Makes exactly one commit to the table, through this load's session.

        Raises:
            MetricError: The counts do not add up; nothing was written.
            CommitConflict: The table has changed since the slice was compared with it; nothing was written.
            LeaseLost: The lock is lost, or the commit of another attempt landed first.
        """
        content = {**self.content(summary.checked()), "hashVersion": self.prepared.form.version}
        return replace(summary, delta_version=self.commit_content(content, write))

    def commit_content(self, content: Mapping[str, Any], write: Callable[[], None]) -> int | None:
        """Write in one commit that carries the token with this content; return the commit's version.

        Args:
            content: Stored in the commit.
            write: Makes exactly one commit to the table, through this load's session.

        Raises:
            CommitConflict: The table has changed since the slice was compared with it; nothing was written.
            LeaseLost: The lock is lost, or the commit of another attempt landed first.
        """
        token = replace(self.request.token, content=content)
        ensure_database(self.lake, self.address)
        with table_lock(self.lake, self.address, self.request.holder):
            reach_failpoint("in_guard")
            check_unchanged(self.lake, self.address, self.state, "while the slice was compared with it")
            self._set_missing_properties()
            # Last of all checks: setting properties can take seconds, in which the lock may be lost.
            self.request.check_lock()
            reach_failpoint("before_commit")
            with carrying_token(self.session, token):
                write()
                reach_failpoint("after_write")
            reach_failpoint("after_commit")
        return self._confirmed(content).version

    def _set_missing_properties(self) -> None:
        """Set the properties of an existing table that the commit needs; this alone changes no rows."""
        if self.alignment is None:
            return
        wanted = {**own_properties(self.prepared), **self.properties}
        if self.is_first:
            wanted |= declared_properties(self.entity, self.lake.settings.timezone)
        if self.fit.widens:
            wanted["delta.enableTypeWidening"] = "true"
        missing = {key: value for key, value in wanted.items() if self.state.properties.get(key) != value}
        if missing:
            set_properties(self.lake, self.address, missing)

    def _confirmed(self, content: Mapping[str, Any]) -> LandedCommit:
        """Return this attempt's commit; Delta skips a commit whose number is already in the table."""
        token = self.request.token
        fact = find_commit(self.lake, self.address, token.app_id, token.number)
        if fact is None or fact.content.get("record") != content.get("record"):
            raise LeaseLost(
                f"the commit to {self.address.shown} did not land: another attempt committed first",
                remedy="Run again: the run continues from the other attempt's commit.",
                details={"app_id": token.app_id, "number": token.number},
            )
        return fact


def table_lock(lake: Lake, address: Address, holder: str) -> AbstractContextManager[None]:
    """Return the lock that guards commits to a table; a catalog's table can be on this machine too.

    Args:
        lake: The lake.
        address: The table.
        holder: Who commits, shown to those who wait.
    """
    path = local_table_path(lake, address)
    return commit_lock(address if path is None else Address(location=str(path)), holder)


def check_unchanged(
    lake: Lake, address: Address, state: TableState, since: str, *, remedy: str | None = None
) -> None:
    """Raise `CommitConflict` if a table has changed since it was observed.

    Args:
        lake: The lake.
        address: The table.
        state: The table as it was observed.
        since: What happened since, as a clause that ends the message.
        remedy: What to do; the error's own remedy unless given.
    """
    found = observe_table(lake, address).version
    if found != state.version:
        raise CommitConflict(
            f"{address.shown} went from version {state.version} to {found} {since}",
            remedy=remedy,
            details={"seen": state.version, "found": found},
        )
