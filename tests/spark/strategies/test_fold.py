"""Slices that are folded into one commit give the table, the metrics and the records of slices one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test
from tests.model.strategies import Record, Refused
from tests.spark.strategies.bench import WAYS, SmallLake, counts_of, entity, hours
from tests.spark.strategies.machine import KEYS, SLICES, Sent, Shape, StrategyMachine, Subject
from tests.spark.strategies.searching import search
from tests.spark.strategies.test_crash import dying

from lakewright.errors import DuplicateBusinesskeyException, LeaseLost
from lakewright.slices.result import ProcessResult
from lakewright.slices.rewind.undo_rebuild import plan_undo
from lakewright.slices.slice_replay import KnownSlice, replay_slices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_NAME = "$slice.date('yyyyMMdd')"
FOLDED: list[int] = []
"""The number of slices in each fold that any machine has made."""


class FoldMachine(StrategyMachine):
    """Slices wait until several are processed together; see `StrategyMachine`."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[str, list[Record]]] = []

    @initialize(
        key=st.sampled_from(sorted(KEYS)),
        scope=st.sampled_from([None, "full", "full", "open"]),
        last_seen=st.sampled_from(["column", "on_change"]),
        policy=st.sampled_from(["evolve", "evolve", "ignore"]),
        is_partitioned=st.booleans(),
        way=st.sampled_from(sorted(WAYS)),
        quarantines=st.booleans(),
        first=SLICES,
    )
    def begin(self, **drawn: Any) -> None:
        super().begin(**drawn, duplicates=None)

    def _send(self, slice_: list[Sent], shape: Shape, *, is_late: bool = False) -> None:
        self.number += 1
        drawn = [self.before.get(sent.key, sent) if sent.is_as_before else sent for sent in slice_]
        records = [self._record(sent, shape) for sent in drawn]
        name = hours(24 * self.number).strftime("%Y%m%d")
        for subject in self.subjects:
            self.lake.put(subject.entity, name, self._table(drawn, records, shape))
        self.before.update({sent.key: sent for sent in drawn})
        self.waiting.append((name, records))

    @precondition(lambda self: len(self.waiting) >= 4)
    @rule(several=st.lists(SLICES, min_size=0, max_size=3))
    def process(self, *, several: list[list[Sent]]) -> None:
        for slice_ in several:
            self._send(slice_, Shape())
        for subject in self.subjects:
            self._process_all(subject)
        self.waiting.clear()
        self._check_tables()

    def _process_all(self, subject: Subject) -> None:
        left = dict(self.waiting)
        while left:
            found = self.lake.process(subject.entity, processing_time=BY_NAME)
            FOLDED.extend(int(note.split()[0]) for note in found.notes if "folded" in note)
            for done in found.slices:
                self._check_done(subject, done.name, left, done.summary)
            if not left:
                break
            self._check_refused(subject, left, found)

    def _check_done(self, subject: Subject, name: str, left: dict[str, list[Record]], summary: Any) -> None:
        assert name == next(iter(left))
        at = 24 * (int((self._day(name) - hours(0)).days))
        counts = subject.model.apply(left.pop(name), at, name)
        assert counts_of(summary) == asdict(counts), (subject.strategy, name)

    def _day(self, name: str) -> Any:
        return datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC)

    def _check_refused(self, subject: Subject, left: dict[str, list[Record]], found: ProcessResult) -> None:
        name, records = next(iter(left.items()))
        assert found.failed == (name,), (subject.strategy, found.errors)
        with pytest.raises(Refused):
            subject.model.apply(records, 24 * (self._day(name) - hours(0)).days, name)
        del left[name]
        self.lake.put_aside()

    def teardown(self) -> None:
        super().teardown()

    send_late = None  # type: ignore[assignment]
    replay = None  # type: ignore[assignment]


@pytest.mark.nightly
@pytest.mark.timeout(2400)
def test_many_folds_give_the_tables_of_the_model(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The headings of the test below, for two hundred folds, or as many as time allows."""

    class Machine(FoldMachine):
        session = spark

    before = len(FOLDED)
    took = search(Machine, lambda: len(FOLDED) - before >= 200, steps=9)
    with capsys.disabled():
        print(f"\n{len(FOLDED) - before} folds, {took}")
    assert len(FOLDED) > before


@pytest.mark.timeout(2400)
def test_a_fold_gives_table_metrics_and_watermarks_of_the_model(spark: SparkSession) -> None:
    """`processing-strategies.md`, "Full Strategy", "Merge Strategy", "Historic Strategy"."""

    class Machine(FoldMachine):
        session = spark

    before = len(FOLDED)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=2,
            stateful_step_count=9,
            deadline=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert len(FOLDED) - before >= 2


ROWS = [
    [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}],
    [{"id": 1, "v": "a"}, {"id": 2, "v": "x"}, {"id": 3, "v": "c"}],
    [{"id": 3, "v": "c"}, {"id": 4, "v": "d"}],
    [{"id": 1, "v": "z"}, {"id": 4, "v": "d"}],
    [{"id": 2, "v": "x"}, {"id": 4, "v": "e"}],
]
BY_DAY = "${slice.date}"


def put_days(lake: SmallLake, things: Any, rows: list[Any], first: int = 1) -> list[str]:
    names = [f"2024-01-{day:02}" for day in range(first, first + len(rows))]
    for name, each in zip(names, rows, strict=True):
        lake.put(things, name, each)
    return names


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["full", "merge", "historic"])
@pytest.mark.parametrize("inferred", [{}, {"delete_missing": True, "delete_scope": "full"}])
def test_a_backlog_is_one_commit_equal_to_one_by_one(
    lake: SmallLake, strategy: str, inferred: dict[str, Any]
) -> None:
    folded = entity(strategy, name="folded", settings=inferred)
    single = entity(strategy, name="single", settings={**inferred, "fold": False})
    notes: list[tuple[str, ...]] = []
    for first in (1, 11):
        for each in (folded, single):
            put_days(lake, each, ROWS, first)
        together = lake.process(folded, processing_time=BY_DAY)
        alone = lake.process(single, processing_time=BY_DAY)
        assert (together.error, alone.error) == (None, None)
        shown = {"delta_version": None, "seconds": 0.0}
        for one, other in zip(together.slices, alone.slices, strict=True):
            assert {**asdict(one.summary), **shown} == {**asdict(other.summary), **shown}, one.name
        columns = [name for name in lake.table(single).columns if not name.startswith("PK_")]
        assert lake.rows(folded, *columns) == lake.rows(single, *columns)
        notes += [together.notes, alone.notes]
    assert lake.version(folded) == 1
    assert notes[2] == ("5 slices, 2024-01-11 to 2024-01-15, were folded into version 1",)
    assert notes[3] == ("the slices are processed one by one: the entity sets fold: false",)


def states(lake: SmallLake) -> dict[str, str]:
    """The last state of each slice."""
    items = sorted(lake.items(), key=lambda item: item.item_id)
    return {item.item_id[-2:]: lake.store.records(item.item_id)[-1].state.value for item in items}


def test_a_fold_that_died_at_any_point_is_made_good_for_each_of_its_slices(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`processing-manifest.md`, "State": one commit, and a PROCESSED with its own metrics for each slice."""
    things = entity("historic", watermark=[{"column_name": "id", "expression": "${last_value}"}])
    names = put_days(lake, things, ROWS)
    lake.use(lake.store, is_dead=lambda holder: True)
    for point in ("after_lock", "before_commit"):
        with dying(monkeypatch, point):
            lake.process(things, processing_time=BY_DAY)
        assert lake.version_or_none(things) is None
        assert set(states(lake).values()) == {"PROCESSING"}
    with dying(monkeypatch, "before_processed"):
        lake.process(things, processing_time=BY_DAY)
    assert lake.version(things) == 0
    assert set(states(lake).values()) == {"PROCESSING"}
    lake.put(things, "2024-01-06", [{"id": 6, "v": "f"}])

    result = lake.process(things, processing_time=BY_DAY)

    assert result.error is None
    assert [done.name for done in result.slices] == [*names, "2024-01-06"]
    assert [done.is_adopted for done in result.slices] == [*[True] * 5, False]
    assert set(states(lake).values()) == {"PROCESSED"}
    assert lake.version(things) == 1
    assert [done.summary.inserted for done in result.slices] == [2, 1, 1, 0, 0, 1]
    assert [done.summary.updated for done in result.slices] == [0, 1, 0, 1, 1, 0]
    assert {item.tokens[key] for item in lake.items() for key in item.tokens} == {1, 2}
    assert lake.ledger.watermarks.last(lake.bench(things).application)["id"].python == 6


def test_slices_before_a_bad_one_are_folded_and_those_after_it_wait(lake: SmallLake) -> None:
    things = entity("merge", name="some")
    twice = [{"id": 1, "v": "a"}, {"id": 1, "v": "b"}]
    names = put_days(lake, things, [*ROWS[:4], twice, ROWS[4], ROWS[3]])

    result = lake.process(things, processing_time=BY_DAY)

    assert isinstance(result.error, DuplicateBusinesskeyException)
    assert [done.name for done in result.slices] == names[:4]
    assert (result.failed, result.waiting) == ((names[4],), tuple(names[5:]))
    assert result.notes == ("4 slices, 2024-01-01 to 2024-01-04, were folded into version 0",)
    assert lake.version(things) == 0
    last = states(lake)
    assert [last[name[-2:]] for name in names[:5]] == [*["PROCESSED"] * 4, "FAILED"]
    assert {last[name[-2:]] for name in names[5:]} == {"RESOLVED"}


def test_a_fold_commits_nothing_once_one_of_its_locks_is_lost(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = entity("full", name="few")
    put_days(lake, things, ROWS)

    def confirm(_: Any, lease: Any) -> None:
        if lease.key.endswith("03"):
            raise LeaseLost("another run has taken it over")

    monkeypatch.setattr("lakewright.stores.heartbeat.confirm", confirm)
    result = lake.process(things, processing_time=BY_DAY)

    assert isinstance(result.error, LeaseLost)
    assert lake.version_or_none(things) is None
    assert set(states(lake).values()) == {"RESOLVED"}


def test_a_replay_of_many_slices_is_one_commit_equal_to_the_table(lake: SmallLake) -> None:
    """`rewind.md`, "Rebuild" and "Undo": a rebuild folds, and an undo applies slices of a fold again.

    An attempt that came so far is not repeated.
    """
    shared = {"bronze_path": "shared"}
    things, again = (entity("historic", name=name, settings=shared) for name in ("once", "again"))
    put_days(lake, things, ROWS)
    done = lake.process(things, processing_time=BY_DAY).slices
    known = [
        KnownSlice(
            item_id=one.item_id,
            name=one.name,
            fingerprint=lake.ledger.item(one.item_id).fingerprint or {},
            at=datetime.fromisoformat(one.name).replace(tzinfo=UTC),
            strategy=again.strategy,
        )
        for one in done
    ]

    def replay() -> Sequence[Mapping[str, Any]]:
        context = lake.bench(again)
        return replay_slices(context, again, known, app="replay", watermarks={}, check=lambda: None)

    for told in (replay(), replay()):
        assert [each["item"] for each in told] == [one.item_id for one in done]
        assert [each["metrics"]["inserted"] for each in told] == [2, 1, 1, 0, 0]
        assert [each["number"] for each in told] == [1, 2, 3, 4, 5]
    assert lake.version(again) == 0
    columns = [name for name in lake.table(things).columns if not name.startswith("PK_")]
    assert lake.rows(again, *columns) == lake.rows(things, *columns)
    plan = plan_undo(lake.bench(things), things, "2024-01-03").as_json()
    assert plan["replayed"] == ["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-05"]
    assert plan["back_to"] is None


def test_bad_rows_of_a_fold_are_put_aside_for_each_slice(lake: SmallLake) -> None:
    """A slice of which rows were put aside infers no deletes; the others of the same commit do."""
    settings = {"on_bad_rows": "quarantine", "delete_missing": True, "delete_scope": "full"}
    things = entity("merge", name="aside", settings=settings)
    both, one = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], [{"id": 1, "v": "a"}]
    names = put_days(lake, things, [both, [*one, {"id": None, "v": "?"}], both, one])

    result = lake.process(things, processing_time=BY_DAY)

    assert result.error is None
    assert lake.version(things) == 0
    summaries = [done.summary for done in result.slices]
    assert [each.quarantined for each in summaries] == [0, 1, 0, 0]
    assert [each.records_in_slice for each in summaries] == [2, 2, 2, 1]
    assert [each.inferred_deletes for each in summaries] == [0, 0, 0, 1]
    assert lake.rows(things, "id", "dlf_deleted") == [(1, False), (2, True)]
    folder = lake.root / "quarantine" / "crm" / "aside"
    assert [found.parent.name for found in folder.rglob("rows.json")] == [names[1]]
    assert any("1 bad row was put aside" in warning for warning in lake.warnings)

    put_days(lake, things, [both, one, both, one], 11)
    result = lake.process(things, processing_time=BY_DAY)
    assert (result.error, lake.version(things)) == (None, 1)  # one commit to a table that is there already
    assert lake.rows(things, "id", "dlf_deleted") == [(1, False), (2, True)]


def test_odd_shapes_of_json_are_put_aside_in_a_fold_too(lake: SmallLake) -> None:
    """A12: the columns of the first slice of a fold count for the next ones, as those of a table do."""
    things = entity("merge", name="odd", settings={"on_bad_rows": "quarantine", "format": "json"})
    folder = Path(things.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True)
    lines = ('[{"of": "x"}]', '"none"', "null", '[{"of": "y"}, {"of": 7}]', '{"of": "z"}')
    for day, each in enumerate(lines, start=1):
        sound = f'{{"id": {day * 10}, "lines": null}}\n'
        (folder / f"2024-01-0{day}").write_text(f'{{"id": {day}, "lines": {each}}}\n{sound}')

    result = lake.process(things, processing_time=BY_DAY)

    assert (result.error, lake.version(things)) == (None, 0)
    assert [done.summary.quarantined for done in result.slices] == [0, 1, 0, 0, 1]
    texts = [
        (id_, value and [each["of"] for each in value]) for id_, value in lake.rows(things, "id", "lines")
    ]
    assert [each for each in texts if each[0] < 10] == [(1, ["x"]), (3, None), (4, ["y", "7"])]
    aside = (lake.root / "quarantine" / "crm" / "odd").rglob("rows.json")
    assert sorted(found.parent.name for found in aside) == ["2024-01-02", "2024-01-05"]
