"""Targets whose builds were all current are not looked at again, and the plan is the same as if they were."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.unit.due.conftest import DAYS

from lakewright.app import App
from lakewright.due.words import plan_document
from lakewright.manifest.journal import BUILD, CALM, SETTLED
from lakewright.manifest.store import Document, Put, Write
from lakewright.plan.resource import Resource
from lakewright.run.builds import BuildState, RecordedBuild, recording
from lakewright.slices.application import application_of
from lakewright.slices.discovery import list_bronze
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.stores.sql.store import SqlStore
from lakewright.usecases.due.observe import settle
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.operate_items import requeue_items


def opened(lake: Path) -> App:
    return App.open(lake, environ={})


def plan(lake: Path) -> dict[str, Any]:
    app = opened(lake)
    try:
        return plan_document(plan_of_project(app))
    finally:
        app.close()


def forget(lake: Path) -> None:
    """Remove what says which targets are settled."""
    app = opened(lake)
    app.make_store()
    found = [each for kind in (SETTLED, CALM) for each in app.store.documents(kind)]
    assert {each.kind for each in found} == {SETTLED, CALM}
    app.store.write(Write(puts=tuple(Put(each.kind, each.key, None) for each in found)))
    app.close()


def settled(lake: Path, kind: str = SETTLED) -> set[str]:
    app = opened(lake)
    try:
        return {each.key.rpartition("/")[2] for each in app.store.documents(kind) if each.value}
    finally:
        app.close()


def commit(table: Path, **info: Any) -> None:
    """Add a commit to the log of a table."""
    log = table / "_delta_log"
    last = max(log.glob("*.json"))
    told = {
        "commitInfo": {"timestamp": 1700000000000, "operation": "WRITE", "operationParameters": {}, **info}
    }
    (log / f"{int(last.stem) + 1:020}.json").write_text(json.dumps(told))


def replace_in_model(lake: Path, old: str, new: str) -> None:
    model = lake / "model.yml"
    assert old in model.read_text()
    model.write_text(model.read_text().replace(old, new))


def record(lake: Path, target: str, **changes: Any) -> None:
    """Record the first build of a target anew, with changes."""
    app = opened(lake)
    app.make_store()
    found = (RecordedBuild.from_json(each.value) for each in app.store.documents(BUILD))
    build = next(each for each in found if each.target == target)
    value = {**build.value, **changes}
    app.store.write(Write(puts=recording([RecordedBuild.from_json(value)])))
    app.close()


def another_slice(lake: Path) -> None:
    (lake / "lake/bronze/e0/2022-01-02.csv").write_text("id,n\n1,1\n2,2\n")
    (lake / "lake/bronze/e0/2022-01-04.csv").write_text("id,n\n1,1\n")


def archived(lake: Path) -> None:
    """Move a processed slice away, and plan until that is known."""
    (lake / "lake/bronze/e1/2022-01-01.csv").unlink()
    app = opened(lake)
    settle(app)
    app.close()
    assert settled(lake, CALM) == {"e0", "e1"}


def with_item(lake: Path, act: Callable[[App, str], object], name: str = "2022-01-02.csv") -> None:
    """Do something to the item of a slice of `e0`."""
    app = opened(lake)
    app.make_store()
    act(app, f"e0/{name}")
    app.close()


def requeue(app: App, item: str) -> object:
    return requeue_items(app, [item], late=True, author="a", reason="r")


def lock(app: App, item: str) -> object:
    requeue(app, item)
    entity = app.project.entity("e0")
    path = (Path(app.project.basedir) / f"lake/bronze/{item}").as_uri()
    lease = timedelta(seconds=60)
    application = application_of(app.project.name, entity)
    return app.ledger.acquire(path, application, app.holder, duration=lease, token_counter=None)


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda lake: None,
    "slices": another_slice,
    "slice gone": lambda lake: (lake / "lake/bronze/e0/2022-01-02.csv").unlink(),
    "slice archived": archived,
    "folder gone": lambda lake: shutil.rmtree(lake / "lake/bronze/e0"),
    "something unreadable": lambda lake: (lake / "lake/bronze/e0/2022-01-09.csv").mkdir(),
    "requeued": lambda lake: with_item(lake, requeue),
    "locked": lambda lake: with_item(lake, lock),
    "rows gone": lambda lake: (lake / f"lake/silver/e0/part-{DAYS}.parquet").unlink(),
    "table gone": lambda lake: shutil.rmtree(lake / "lake/silver/e0"),
    "column": lambda lake: replace_in_model(lake, "{name: n}]", "{name: n}, {name: m}]"),
    "key": lambda lake: replace_in_model(lake, "{name: n}]", "{name: n, fieldroles: [businesskey]}]"),
    "strategy": lambda lake: replace_in_model(lake, "processtype: merge", "processtype: full"),
    "after": lambda lake: replace_in_model(
        lake, "processtype: merge", "processtype: merge\n    after: [other]"
    ),
    "disabled": lambda lake: replace_in_model(
        lake, "processtype: merge", "processtype: merge\n    enabled: false"
    ),
    "silver": lambda lake: commit(lake / "lake/silver/e0"),
    "silver emptied": lambda lake: commit(lake / "lake/silver/e0", operation="TRUNCATE"),
    "maintenance": lambda lake: commit(lake / "lake/silver/e0", operation="OPTIMIZE"),
    "gold": lambda lake: commit(lake / "lake/gold/g1"),
    "gold gone": lambda lake: shutil.rmtree(lake / "lake/gold/g1"),
    "definition": lambda lake: replace_in_model(lake, "as day from s2", "as day, 1 as one from s2"),
    "policy": lambda lake: replace_in_model(
        lake, "    mapping: m1", "    mapping: m1\n    buildPolicy: IF_EMPTY"
    ),
    "parameter": lambda lake: replace_in_model(lake, "{name: day, type: date}", "{name: day, type: string}"),
    "slices of targets": lambda lake: replace_in_model(lake, ", slices: '$day*'", ""),
    "renamed": lambda lake: replace_in_model(lake, "g1", "h1"),
    "place": lambda lake: replace_in_model(lake, "lake/gold/g1", "lake/gold/h1"),
    "shared place": lambda lake: replace_in_model(lake, "lake/gold/g1", "lake/gold/g0"),
    "begun": lambda lake: record(lake, "g0", state=BuildState.BEGUN.value, output=[]),
    "withdrawn": lambda lake: record(lake, "g0", state=BuildState.WITHDRAWN.value, output=[]),
    "built of something else": lambda lake: record(lake, "g0", definition="other"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_is_the_same_whether_or_not_settled_targets_are_known(lake: Path, change: str) -> None:
    CHANGES[change](lake)
    found = plan(lake)
    forget(lake)
    assert found == plan(lake)
    assert (found["steps"], found["findings"]) == ([], []) or change not in {"nothing", "maintenance"}


def test_a_plan_reads_only_the_builds_of_what_may_have_changed(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[Document]()

    def documents(self: Any, kind: str, **options: Any) -> Any:
        for each in own(self, kind, **options):
            if kind == BUILD:
                read.append(each)
            yield each

    own = SqlStore.documents
    monkeypatch.setattr(SqlStore, "documents", documents)
    assert settled(lake) == {"g0", "g1", "g2"}
    assert (plan(lake)["steps"], read) == ([], [])
    another_slice(lake)
    due = {each["subject"]["name"] for each in plan(lake)["steps"]}
    assert due >= {"e0"}
    assert {each.value["target"] for each in read} == {"g0", "g2"}  # which read `e0`


def test_logs_of_settled_targets_are_not_read(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def open_table(self: DeltaTable, path: Path, *args: Any, **options: Any) -> None:
        read.append(path.name)
        own(self, path, *args, **options)

    own = DeltaTable.__init__
    monkeypatch.setattr(DeltaTable, "__init__", open_table)
    assert plan(lake)["steps"] == []
    assert sorted(read) == ["e0", "e1"]
    commit(lake / "lake/gold/g1")
    plan(lake)
    assert sorted(read) == ["e0", "e0", "e1", "e1", "g1"]


def test_a_commit_while_targets_are_settled_is_not_passed_over(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(lake)
    own = DeltaTable.version

    def version(self: DeltaTable) -> int:
        monkeypatch.setattr(DeltaTable, "version", own)
        found = own(self)
        for name in ("gold/g0", "gold/g1", "silver/e0"):
            commit(lake / "lake" / name, operation="TRUNCATE")
        return found

    monkeypatch.setattr(DeltaTable, "version", version)
    settle(opened(lake))
    monkeypatch.setattr(DeltaTable, "version", own)
    found = plan(lake)
    forget(lake)
    assert found == plan(lake)
    assert (found["steps"] or found["findings"]) != []


def test_a_build_unsettles_its_target_until_it_is_looked_at_again(lake: Path) -> None:
    record(lake, "g0")
    assert settled(lake) == {"g1", "g2"}
    settle(opened(lake))
    assert settled(lake) == {"g0", "g1", "g2"}
    record(lake, "g0", definition="other")
    settle(opened(lake))
    assert settled(lake) == {"g1", "g2"}


def test_a_build_that_is_recorded_while_targets_are_settled_is_not_passed_over(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(lake, "g0")
    own = DeltaTable.version

    def version(self: DeltaTable) -> int:
        monkeypatch.setattr(DeltaTable, "version", own)
        record(lake, "g0", definition="other")
        return own(self)

    monkeypatch.setattr(DeltaTable, "version", version)
    settle(opened(lake))
    assert settled(lake) == {"g1", "g2"}


def test_a_build_of_the_log_that_is_later_than_the_recorded_one_stands_for_it(lake: Path) -> None:
    """The lake was moved since, and the manifest is older: the former place is no second output."""
    app = opened(lake)
    build = next(
        found
        for each in app.store.documents(BUILD)
        if (found := RecordedBuild.from_json(each.value)).target == "g0"
    )
    app.close()
    earlier = replace(build, order="2020", writes=(Resource.file("/former/g0"),), output={})
    changed = {name: value for name, value in earlier.value.items() if name != "target"}
    record(lake, "g0", **changed)
    forget(lake)
    later = {**build.value, "order": "2999"}
    commit(lake / "lake/gold/g0", userMetadata=json.dumps({"by": "lakewright", "build": later}))
    own = [each for each in plan(lake)["steps"] if each["subject"]["instance"] == build.parameters]
    assert [each["action"] for each in own] == ["record"]


def test_a_table_that_lacks_files_keeps_nothing_else_from_being_settled(lake: Path) -> None:
    forget(lake)
    CHANGES["rows gone"](lake)
    settle(opened(lake))
    assert settled(lake, CALM) == {"e1"}


def test_bad_rows_in_quarantine_are_noticed_of_a_calm_entity_as_long_as_they_lie_there(lake: Path) -> None:
    replace_in_model(lake, "settings: {format: csv}", "settings: {format: csv, on_bad_rows: quarantine}")
    app = opened(lake)
    entity = app.project.entity("e0")
    folder = Path(entity.places(app.project.lake).quarantine) / "2022-01-01.csv"
    item = (lake / "lake/bronze/e0/2022-01-01.csv").as_uri()
    requeue(app, "e0/2022-01-01.csv")
    lease = timedelta(seconds=60)
    application = application_of(app.project.name, entity)
    claim = app.ledger.acquire(item, application, app.holder, duration=lease, token_counter=None)
    fingerprint = next(
        each.fingerprint for each in list_bronze(SliceFolder(str(lake / "lake/bronze/e0")), app.lake).slices
    )
    app.ledger.processed(claim, {"fingerprint": fingerprint, "quarantined": 2})
    folder.mkdir(parents=True)
    before = plan(lake)
    settle(app)
    app.close()
    assert [each["code"] for each in before["findings"]] == ["bad_rows"]
    assert settled(lake, CALM) >= {"e0"}
    assert plan(lake) == before
    replace_in_model(lake, ", on_bad_rows: quarantine", "")
    settle(opened(lake))
    assert plan(lake)["findings"] == before["findings"]
    folder.rmdir()
    assert plan(lake)["findings"] == []


@pytest.mark.parametrize(
    ("config", "needs"),
    [
        ("{replay_budget: {slices: 3}}", []),
        ("{replay_budget: {slices: 2}}", ["replay"]),
        ("{replay_budget: {slices: 2}, allow: replay}", []),
        ("{replay_budget: {slices: 2}, allow: [foreign, replay]}", []),
        ("{replay_budget: {bytes: 10}}", ["replay"]),
        ("{replay_budget: {bytes: 1MB}}", []),
    ],
)
def test_a_project_says_what_a_replay_may_cost(lake: Path, config: str, needs: list[str]) -> None:
    """Rules of apply, "Decisions and grants": the project may give grants for good."""
    replace_in_model(lake, "processtype: merge", "processtype: historic")
    with (lake / "model.yml").open("a") as file:
        file.write(f"apply: {config}\n")
    replays = [each for each in plan(lake)["steps"] if each["action"] == "replay"]
    assert [(each["subject"]["name"], each["needs"]) for each in replays] == [("e0", needs), ("e1", needs)]
