"""What a rewind left beside a table is continued only if it still belongs to the table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import CommitProperties, write_deltalake
from tests.commands import InProcess
from tests.unit.slices.test_plan_undo import place_of
from tests.unit.slices.test_recover_from_log import Place, pa

from lakewright.lake.commit import Commit
from lakewright.lake.delta_log import TableState
from lakewright.lake.lake import Lake
from lakewright.lake.observation import may_be_clustered
from lakewright.slices.chain import counter_of
from lakewright.slices.rewind.settlement import settle_rewind
from lakewright.slices.rewind.side_table import (
    SUFFIX,
    begin_beside,
    is_outlived,
    left_beside,
    rewind_session,
)
from lakewright.slices.rewind.undo_rebuild import RebuildStart, plan_rebuild
from lakewright.spec.models.places import Address

APP = "lakewright/shop/orders:orders/rebuild/0"
START = datetime(2024, 1, 1, tzinfo=UTC)


def written(path: Path, content: Mapping[str, Any], mode: Any = "append") -> None:
    properties = CommitProperties({"userMetadata": json.dumps(content)})
    write_deltalake(path, pa.table({"id": [1]}), mode=mode, commit_properties=properties)


def rebuilt(place: Place, count: int, **changed: Any) -> Any:
    """Let an attempt leave the first slices beside the table; return the plan of the rebuild."""
    plan = plan_rebuild(place.bench, place.entity, RebuildStart()).replay
    for number, known in enumerate(plan.slices[:count], 1):
        content = {
            "app": APP,
            "number": number,
            "item": known.item_id,
            "fingerprint": dict(known.fingerprint),
            "processingTime": known.at.isoformat(),
            "strategy": known.strategy.value,
        }
        written(Path(f"{place.silver}__rebuild"), {**content, **changed})
    return plan


def is_continued(place: Place, plan: Any) -> bool:
    lake = place.workspace.lake
    side = place.entity.beside(lake.settings, SUFFIX)
    return begin_beside(place.bench, place.entity, side, None, app=APP, slices=plan.slices)


def test_an_attempt_goes_on_while_no_rewind_has_changed_the_table(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    plan = rebuilt(place, 2)
    assert is_continued(place, plan)
    left = left_beside(place.workspace.lake, place.entity)
    assert left is not None
    assert "orders__rebuild is left of a rebuild or an undo that was not swapped in" in left.words
    assert left.advice.startswith("`lakewright rebuild orders` or the undo, typed again, continues it")


def test_what_was_swapped_in_by_a_process_that_died_is_removed_and_said(tmp_path: Path) -> None:
    """Otherwise the next rebuild would continue it, and doctor would call it not swapped in."""
    place = place_of(tmp_path, "s1", "s2")
    plan = rebuilt(place, 2)
    told: dict[str, Any] = {"id": "r1", "base": None, "slices": []}
    written(place.silver, {"app": str(place.application), "number": 3, "rewind": told, "items": []})
    left = left_beside(place.workspace.lake, place.entity)
    assert left is not None
    assert "is of no use: an undo or a rebuild has changed the table since" in left.words
    assert left.advice == "the next undo or rebuild removes it"

    assert not is_continued(place, plan)
    assert not Path(f"{place.silver}__rebuild").exists()
    assert place.warnings[-1] == (
        f"orders: what was left beside the table is removed: {place.silver}__rebuild: a rewind has changed "
        "the table since"
    )
    assert left_beside(place.workspace.lake, place.entity) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"processingTime": "2020-01-01T00:00:00+00:00"},
        {"strategy": "historic"},
        {"fingerprint": {"size": 7}},
        {"unwritten": [{"number": 1, "item": "file:///gone", "fingerprint": {}}]},
    ],
)
def test_slices_that_would_be_applied_otherwise_now_are_applied_anew(
    tmp_path: Path, changed: Mapping[str, Any]
) -> None:
    """A slice that was requeued and got another time counts, and so does one that changed nothing."""
    place = place_of(tmp_path, "s1", "s2")
    plan = rebuilt(place, 1, **changed)
    assert not is_continued(place, plan)
    assert "built of other slices, under another declaration, or from another" in place.warnings[-1]


def test_only_a_rewind_after_the_beginning_outlives_what_is_beside() -> None:
    def commit(hour: int, **content: Any) -> Commit:
        return Commit(hour, START + timedelta(hours=hour), "WRITE", {}, content)

    side = (commit(5, app=APP), commit(9, app=APP))
    assert not is_outlived(side, (commit(1), commit(2, rewind={"id": "r"}), commit(7)))
    assert is_outlived(side, (commit(1), commit(6, rewind={"id": "r"}), commit(7)))
    assert not is_outlived((replace(side[0], at=None),), (commit(6, rewind={"id": "r"}),))


def test_a_clone_of_a_table_that_was_made_anew_is_not_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version has the same number, and other rows."""
    place = place_of(tmp_path, "s1", "s2")
    plan = plan_rebuild(place.bench, place.entity, RebuildStart(slice="s2")).replay
    side = Path(f"{place.silver}__rebuild")
    cloned: list[Any] = []

    class Session:
        def sql(self, text: str) -> Session:
            cloned.append(text)
            return self

        def collect(self) -> None:
            return None

    monkeypatch.setattr("lakewright.slices.rewind.side_table.rewind_session", lambda *_: Session())
    monkeypatch.setattr("lakewright.slices.rewind.side_table.ensure_database", lambda *_: None)

    class Carrying:
        def __init__(self, session: Any, token: Any) -> None:
            written(side, {"app": token.app_id, "number": 0, **token.content}, mode="overwrite")

        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr("lakewright.slices.rewind.side_table.carrying_token", Carrying)

    def begin() -> bool:
        lake: Lake = place.workspace.lake
        return begin_beside(
            place.bench,
            place.entity,
            place.entity.beside(lake.settings, SUFFIX),
            0,
            app=APP,
            slices=plan.slices,
        )

    assert (begin(), len(cloned)) == (False, 1)
    assert (begin(), len(cloned)) == (True, 1)
    content = {"app": str(place.application), "number": 1, "item": plan.kept[0].item_id}
    shutil.rmtree(place.silver)
    written(place.silver, content)
    assert (begin(), len(cloned)) == (False, 2)


@pytest.mark.parametrize("can_be_removed", [True, False])
def test_a_rewind_that_is_recorded_later_leaves_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_be_removed: bool
) -> None:
    """Its process died after the commit; the next run records it, and what it swapped in goes."""
    place = place_of(tmp_path, "s1", "s2")
    rebuilt(place, 2)
    lease = place.leases.acquire("write orders")
    key = counter_of(place.entity.places(place.workspace.lake.settings).silver)
    place.ledger.announce_rewind(key, "rebuild of orders", lease, "r1", place.application)
    place.leases.release(lease)
    told: dict[str, Any] = {"id": "r1", "base": None, "slices": [], "watermarks": {}, "reason": "r"}
    written(place.silver, {"app": str(place.application), "number": 3, "rewind": told, "items": []})
    if not can_be_removed:
        monkeypatch.setattr("lakewright.slices.rewind.side_table.drop_table", fails)
    assert settle_rewind(place.bench, place.entity)
    assert place.ledger.rewind_of(key) is None
    assert Path(f"{place.silver}__rebuild").exists() is not can_be_removed
    said = "orders: the rebuild of orders had changed the table, and is recorded now"
    kept = f"orders: {place.silver}__rebuild, which is of no use any more, can't be removed: no right"
    assert place.warnings[1:] == ([said] if can_be_removed else [kept, said])


def fails(*_: Any) -> None:
    raise PermissionError("no right")


@pytest.mark.parametrize(("rows", "is_tiny", "is_small"), [(20_000, True, True), (20_001, False, True)])
def test_statements_of_a_rewind_are_tuned_to_the_table(
    monkeypatch: pytest.MonkeyPatch, rows: int, is_tiny: bool, is_small: bool
) -> None:
    """As those over a slice: nothing is compiled for few rows."""
    settings: dict[str, str] = {}
    conf = SimpleNamespace(set=settings.__setitem__, unset=lambda key: settings.pop(key, None))
    started = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: None))
    lake: Any = SimpleNamespace(spark=started, session=SimpleNamespace(conf={}))
    session: Any = SimpleNamespace(conf=conf)
    monkeypatch.setattr("lakewright.slices.rewind.side_table.strict_session", lambda _: session)
    assert rewind_session(lake, TableState(exists=True, rows=rows)) is session
    assert ("spark.sql.codegen.wholeStage" in settings) is is_tiny
    assert ("spark.sql.adaptive.enabled" in settings) is is_small


def test_plan_and_doctor_name_what_is_left_beside(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text(
        "name: shop\nmodules: [model]\nlake: {root_folder: '${project.basedir}/lake'}\n"
    )
    (tmp_path / "model" / "m.yml").write_text(
        "connections: {c: {settings: {bronze_path: '${entity}', silver_path: '${entity}'}}}\n"
        "entities: {orders: {id: 1, connection: c, processtype: full}}\n"
        "targets: {orders: {kind: entity, entity: orders}}\njobs: {daily: {targets: [orders]}}\n"
    )
    silver = tmp_path / "lake" / "silver"
    written(silver / "orders", {})
    written(silver / "orders__rebuild", {"app": APP})
    project = InProcess(tmp_path)
    for words in (("plan", "daily", "build"), ("doctor", "orders")):
        said = " ".join(project.run(*words).all.split())
        assert "orders__rebuild is left of a rebuild or an undo that was not swapped in" in said, words
        assert "typed again, continues it" in said, words


def test_delta_is_asked_for_clustering_only_where_the_log_names_it(tmp_path: Path) -> None:
    """The question costs a query of Spark in each undo and rebuild."""
    place = place_of(tmp_path, "s1")
    lake, silver = place.workspace.lake, place.entity.places(place.workspace.lake.settings).silver
    assert not may_be_clustered(lake, silver)
    log = place.silver / "_delta_log" / f"{0:020}.json"
    features = ["appendOnly", "invariants", "domainMetadata", "clustering"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("\n".join(json.dumps({"protocol": protocol} if "protocol" in a else a) for a in actions))
    assert may_be_clustered(lake, silver)


def test_a_table_beside_another_is_shown_as_that(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1")
    settings = place.workspace.lake.settings
    own, beside = (
        each.places(settings).silver for each in (place.entity, place.entity.beside(settings, SUFFIX))
    )
    assert (own.shown, beside.shown) == (str(own), str(own))
    assert (str(beside), beside) == (f"{own}__rebuild", Address(location=f"{own}__rebuild"))
