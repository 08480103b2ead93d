"""What a strategy is given to work with, and how its result is committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import CommitConflict, LeaseLost
from lakewright.lake.commit import LandedCommit, Token, carrying_token, find_commit
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import local_table_path, observe_table, read_table
from lakewright.lake.table import ensure_database, set_properties
from lakewright.lake.table_state import TableState
from lakewright.plan.permissions import Permissions
from lakewright.spec.models.places import Address
from lakewright.strategies.drift import Alignment
from lakewright.strategies.facts import Facts
from lakewright.strategies.summary import Summary
from lakewright.strategies.table_properties import own_properties
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import Prepared
    from lakewright.transform.system import SystemColumns

__all__ = ["Work"]


@dataclass(frozen=True, slots=True)
class Work:
    """One prepared slice, the table as it is, and what the commit is to carry.

    Attributes:
        session: In ANSI mode, of this work alone.
        alignment: How the slice's columns fit the table's; None where there is no table.
        at: The processing time.
        lower_ends: Watermark column, as declared, to the lower end of its window; empty where there is none.
        app_id: Under which commits to the table are numbered.
        number: Of this slice's commit.
        content: What the commit carries beside metrics: item, revision, run, record.
        check: Raises if the slice's lock isn't held any more.
        holder: Who works, for others to read.
        is_small: Whether what each query costs by itself counts more than its rows.
    """

    lake: Lake
    session: SparkSession
    entity: Entity
    address: Address
    state: TableState
    prepared: Prepared
    facts: Facts
    alignment: Alignment | None
    at: datetime
    app_id: str
    number: int
    check: Callable[[], None]
    holder: str
    content: Mapping[str, Any] = field(default_factory=dict)
    lower_ends: Mapping[str, object] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)
    is_small: bool = False

    @property
    def system(self) -> SystemColumns:
        """Names of the system columns."""
        return self.prepared.system

    def target(self) -> DataFrame:
        """Return the table's rows."""
        return read_table(self.session, self.address)

    def aligned(self, frame: DataFrame, *, unless: str | None = None) -> DataFrame:
        """Return rows of the slice with the columns of the table that is there.

        Args:
            frame: The rows.
            unless: Condition of rows that aren't written: in columns of another type their values become
                null, and need not fit.
        """
        retyped = self.fit.drift.retyped or {} if unless else {}
        columns = self.fit.columns.items()
        fitted = {name: f"if({unless}, null, {sql})" if name in retyped else sql for name, sql in columns}
        return frame.selectExpr(*(f"{sql} as {name_sql(name)}" for name, sql in fitted.items()))

    @property
    def fit(self) -> Alignment:
        """How the slice's columns fit the table that is there."""
        if self.alignment is None:
            raise RuntimeError("there is no table that the slice could fit")
        return self.alignment

    def commit(self, summary: Summary, write: Callable[[], None]) -> Summary:
        """Write in one commit that carries token and summary; return the summary with the commit's version.

        Args:
            summary: Of the work; its numbers are checked first.
            write: Makes exactly one commit to the table, through this work's session.

        Raises:
            MetricError: The numbers don't add up; nothing was written.
            CommitConflict: The table has changed since it was looked at; nothing was written.
            LeaseLost: The lock is lost, or another attempt's commit was there first.
        """
        content = {**self.content, "metrics": summary.checked().as_json(), **_noted(self.alignment)}
        ensure_database(self.session, self.address)
        with commit_lock(self._guarded_place(), self.holder):
            reach_failpoint("in_guard")
            self._refuse_moved()
            self._adjust()
            self.check()
            reach_failpoint("before_commit")
            with carrying_token(self.session, Token(self.app_id, self.number, content)):
                write()
                reach_failpoint("after_write")
            reach_failpoint("after_commit")
        return replace(summary, delta_version=self._confirmed(content).version)

    def _guarded_place(self) -> Address:
        """Where the lock is that guards commits: also a catalog's table can be on this machine."""
        place = local_table_path(self.lake, self.address)
        return self.address if place is None else Address(location=str(place))

    def _adjust(self) -> None:
        """Give the table the properties that the commit needs; by themselves they change nothing."""
        if not self.state.exists:
            return
        wanted = own_properties(self.prepared)
        if self.fit.widens:
            wanted["delta.enableTypeWidening"] = "true"
        missing = {key: value for key, value in wanted.items() if self.state.properties.get(key) != value}
        if missing:
            set_properties(self.session, self.address, missing)

    def _refuse_moved(self) -> None:
        now = observe_table(self.lake, self.address)
        if now.version != self.state.version:
            raise CommitConflict(
                f"{self.address} went from version {self.state.version} to {now.version} while the slice was "
                "compared with it",
                details={"seen": self.state.version, "found": now.version},
            )

    def _confirmed(self, content: Mapping[str, Any]) -> LandedCommit:
        fact = find_commit(self.lake, self.address, self.app_id, self.number)
        if fact is None or fact.content.get("record") != content.get("record"):
            raise LeaseLost(
                f"the commit to {self.address} did not land: another attempt's was there first",
                remedy="Run again: what the other attempt did is taken over.",
                details={"app_id": self.app_id, "number": self.number},
            )
        return fact


def _noted(alignment: Alignment | None) -> dict[str, Any]:
    return {"drift": alignment.drift.as_json()} if alignment is not None and alignment.drift else {}
