"""Undo and rebuild over a small lake, and a machine that undoes slices which nobody chose.

The model says what the table is after an undo: it applies all slices but the undone one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.model.strategies import Model, Record, Refused
from tests.spark.strategies.machine import Sent, Shape, StrategyMachine, Subject

from lakewright.plan.permissions import Permissions
from lakewright.slices.chain import counter_of
from lakewright.slices.rewind.execution import build_beside, rewind_table
from lakewright.slices.rewind.side_table import SUFFIX, remove_beside
from lakewright.slices.rewind.undo_rebuild import RebuildStart, plan_rebuild, plan_undo

if TYPE_CHECKING:
    from tests.spark.strategies.bench import SmallLake

    from lakewright.manifest.rewind import Rewind
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity


UNDONE: list[str] = []
"""The strategy of every undo and rebuild that any machine has made."""


@contextmanager
def _announced(lake: SmallLake, entity: Entity) -> Iterator[tuple[ProcessingContext, Rewind]]:
    context, leases = lake.bench(entity), lake.leases()
    silver = entity.places(lake.lake.settings).silver
    lease = leases.acquire(f"write {silver}")
    try:
        yield (
            context,
            context.ledger.announce_rewind(
                counter_of(silver), "rewind", lease, str(uuid4()), context.application
            ),
        )
    finally:
        leases.release(lease)


def undo_in(lake: SmallLake, entity: Entity, name: str, *, is_requeued: bool = False) -> int | None:
    """Undo a slice; return the version of the table after."""
    plan = plan_undo(lake.bench(entity), entity, name, is_requeued=is_requeued)
    with _announced(lake, entity) as (context, rewind):
        return rewind_table(
            context, entity, plan.replay, rewind, operation="undo", reason="tried", check=lambda: None
        )


def rebuild_in(lake: SmallLake, entity: Entity) -> int:
    """Build a table again from its slices; return its version after."""
    with _announced(lake, entity) as (context, rewind):
        plan = plan_rebuild(context, entity, RebuildStart()).replay
        version = rewind_table(
            context, entity, plan, rewind, operation="rebuild", reason="tried", check=lambda: None
        )
        assert version is not None
        return version


@dataclass(frozen=True)
class Applied:
    """A slice that the model has applied."""

    name: str
    records: list[Record]
    at: int
    is_late: bool
    is_usual: bool


@dataclass
class History:
    """The slices of a subject, in the order in which they were applied."""

    slices: list[Applied] = field(default_factory=list)

    def without(self, model: Model, name: str) -> Model:
        """Return the model after all slices but one.

        Raises:
            Refused: One of them can't be applied without it.
        """
        fresh = replace(model, rows=[], last=None, is_late=False)
        has_processed = False
        for each in self.slices:
            if each.name != name:
                fresh.apply(each.records, each.at, each.name, is_late=each.is_late and has_processed)
                has_processed = has_processed or not each.is_late
        return fresh


class RewindMachine(StrategyMachine):
    """Slices for three entities, some of which are undone or applied again."""

    def __init__(self) -> None:
        super().__init__()
        self.histories: dict[str, History] = {}

    def _send(self, slice_: list[Sent], shape: Shape, *, is_late: bool = False) -> None:
        drawn = [self.before.get(sent.key, sent) if sent.is_as_before else sent for sent in slice_]
        records = [self._record(sent, shape) for sent in drawn]
        super()._send(slice_, shape, is_late=is_late)
        for subject in self.subjects:
            if self._is_processed(subject, self.last):
                is_usual = replace(shape, is_turned=False) == Shape()
                applied = Applied(self.last, records, 10 * self.number, is_late, is_usual)
                self.histories.setdefault(subject.strategy, History()).slices.append(applied)

    def _is_processed(self, subject: Subject, name: str) -> bool:
        application = self.lake.bench(subject.entity).application
        own = f"/{subject.entity.name}/{name}"
        found = [item for item in self.lake.items() if item.item_id.endswith(own)]
        return any(item.is_processed_by(application) for item in found)

    @precondition(lambda self: self.number > 1)
    @rule(which=st.integers(0, 30), strategy=st.sampled_from(["full", "merge", "historic", "historic"]))
    def undo_one(self, *, which: int, strategy: str) -> None:
        """The table is as if all other slices had been applied, and none else."""
        subject = next(each for each in self.subjects if each.strategy == strategy)
        history = self.histories.get(strategy, History())
        if len(history.slices) < 2:
            return
        name = history.slices[which % len(history.slices)].name
        if not next(each for each in history.slices if each.name != name).is_usual:
            # It would give the table its columns, which the model knows by the slices of the usual shape.
            return
        try:
            expected = history.without(subject.model, name)
        except Refused:
            return
        undo_in(self.lake, subject.entity, name)
        UNDONE.append(strategy)
        subject.model = expected
        history.slices[:] = [each for each in history.slices if each.name != name]
        subject.has_processed = any(not each.is_late for each in history.slices)
        self._check_tables()

    @precondition(lambda self: self.number > 1)
    @rule(which=st.integers(0, 30), strategy=st.sampled_from(["merge", "historic"]))
    def requeue_one(self, *, which: int, strategy: str) -> None:
        """Undone and processed again, with those after it: the table is as if nothing had been undone."""
        subject = next(each for each in self.subjects if each.strategy == strategy)
        history = self.histories.get(strategy, History())
        if not history.slices or any(each.is_late for each in history.slices):
            return
        name = history.slices[which % len(history.slices)].name
        if self._changed_nothing(subject, name):
            return
        undo_in(self.lake, subject.entity, name, is_requeued=True)
        result = self.lake.process(subject.entity, permissions=Permissions(allow_late=True))
        assert result.error is None, result.error
        UNDONE.append(strategy)
        self._check_tables()

    def _changed_nothing(self, subject: Subject, name: str) -> bool:
        own = f"/{subject.entity.name}/{name}"
        (item,) = [each for each in self.lake.items() if each.item_id.endswith(own)]
        records = [record.content for record in self.lake.store.records(item.item_id)]
        done: list[Any] = [content["delta_version"] for content in records if "delta_version" in content]
        return done[-1] is None

    @precondition(lambda self: self.number > 1)
    @rule(strategy=st.sampled_from(["full", "merge", "historic"]))
    def rebuild_one(self, *, strategy: str) -> None:
        """With the same declaration the table is the same, row for row."""
        subject = next(each for each in self.subjects if each.strategy == strategy)
        if not self.histories.get(strategy, History()).slices:
            return
        rebuild_in(self.lake, subject.entity)
        UNDONE.append(strategy)
        self._check_tables()

    @precondition(lambda self: self.number > 1)
    @rule()
    def rebuild_merge_as_historic(self) -> None:
        """Merge made Historic has the versions that it would have had from the start."""
        merge, historic = (each for each in self.subjects if each.strategy in ("merge", "historic"))
        history = self.histories.get("merge", History())
        if not history.slices or not history.slices[0].is_usual:
            return
        try:
            expected = history.without(historic.model, "")
        except Refused:
            return
        declared = merge.entity.model_copy(update={"processtype": "historic"})
        context = self.lake.bench(declared)
        plan = plan_rebuild(context, declared, RebuildStart()).replay
        build_beside(context, declared, plan, check=lambda: None)
        built = Subject("historic", declared.beside(self.lake.lake.settings, SUFFIX), expected)
        assert sorted(map(repr, self._read(built) or ())) == sorted(map(repr, self._expected(built)))
        remove_beside(context, declared)
        UNDONE.append("merge as historic")

    # Half of the rules are rewinds: each slice goes to three entities, a rewind to one.
    send_as_usual = None  # type: ignore[assignment]
    replay = None  # type: ignore[assignment]
