"""What `status` shows of a lake: what runs, what is due, and what was noticed, as codes. No Spark."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.commands import InProcess
from tests.documents import checked
from tests.silver import sign_last_commit
from tests.unit.usecases.slice_times.test_blocking_times import shop_with
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, app_of, processed, record_processed

from lakewright.app import App
from lakewright.due.facts import Subject
from lakewright.due.plan import Code, Finding, Plan, Reason
from lakewright.due.words import plan_document
from lakewright.manifest.journal import Run
from lakewright.manifest.lock import Lock
from lakewright.manifest.record import Application
from lakewright.slices.application import application_of
from lakewright.stores.sqlite.database import SqliteStore

FIRST, SECOND, NEW = "2024-05-01.csv", "2024-05-02.csv", "2024-05-04.csv"
TAKES_ALL = "description: x"


@pytest.fixture
def shop(tmp_path: Path) -> InProcess:
    """A project whose three slices are in its table; its job has no parameter."""
    made = processed(tmp_path, "merge", TAKES_ALL)
    declare(tmp_path, "parameters: [{name: day, type: date}], ", "")
    return made


def bronze(shop: InProcess) -> Path:
    return shop.folder / "lake/bronze/orders"


def declare(folder: Path, old: str, new: str) -> None:
    model = folder / "m.yml"
    assert old in model.read_text()
    model.write_text(model.read_text().replace(old, new))


def status(shop: InProcess) -> Any:
    return checked(shop.json("status"))


def steps(shop: InProcess) -> list[tuple[str, str, str]]:
    """Return the codes of what is due, with the parts that they are about, and their states."""
    found = status(shop)["steps"]
    return [(each["reason"]["code"], each["subject"]["part"], each["status"]) for each in found]


def findings(shop: InProcess) -> list[tuple[str, Any]]:
    return [(each["code"], each["params"]) for each in status(shop)["findings"]]


def decided(shop: InProcess, subject: str, choice: str) -> None:
    assert shop.run("decide", subject, choice).code == 0


def test_it_is_the_plan_with_what_runs_and_what_ran(shop: InProcess) -> None:
    (bronze(shop) / NEW).write_text("id\n1\n")
    with app_of(shop.folder) as app:
        for run_id, ended in (("lost", "FAILED"), ("now", None)):
            run = Run(run_id, "shop", "daily", "BUILD", {}, app.store.now(), app.holder, status="RUNNING")
            run = app.journal.start_run(run)
            if ended is not None:
                app.journal.finish_run(run, ended, finished=app.store.now())
    done = shop.run("status", "-o", "json")
    found = json.loads(done.out)
    planned = json.loads(shop.run("plan", "-o", "json").out)
    assert (done.code, found["schema"]) == (0, "lakewright/plan/2")
    assert {key: found[key] for key in planned} == planned
    assert [each["reason"]["code"] for each in found["steps"]] == ["new_slices"]
    assert [each["run_id"] for each in found["running"]] == ["now"]
    assert [each["run_id"] for each in found["last_runs"]] == ["now", "lost"]
    assert (found["locked"], found["faults"], found["withheld"], found["unwritable"]) == ([], [], [], None)
    page = shop.run("status").out
    titles = ("Running", "Due", "Plan. NEEDS_YOU=0 DUE=1 WAITS=0", "Last runs", "lost  ")
    assert [page.index(title) for title in titles] == sorted(page.index(title) for title in titles)


def test_a_clean_lake_has_an_empty_plan(shop: InProcess) -> None:
    assert (steps(shop), findings(shop)) == ([], [])
    assert shop.run("status").out == "Plan. NEEDS_YOU=0 DUE=0 WAITS=0\n"


def test_a_locked_slice_is_named_and_what_follows_it_waits(shop: InProcess) -> None:
    for name in (NEW, "2024-05-05.csv"):
        (bronze(shop) / name).write_text("id\n1\n")
    shop.json("manifest", "discover")
    with app_of(shop.folder) as app:
        held = claim(app, shop, NEW)
        assert isinstance(app.ledger.lock(app.ledger.item(held.item_id)), Lock)
        assert steps(shop) == [("locked", NEW, "waits"), ("failed_before", "", "waits")]
        (row,) = status(shop)["locked"]
        assert (row["entity"], row["slice"], row["stale"]) == ("orders", NEW, False)


def claim(app: App, shop: InProcess, name: str) -> Any:
    application = application_of("shop", app.project.entity("orders"))
    item = (bronze(shop) / name).as_uri()
    lease = timedelta(seconds=60)
    return app.ledger.acquire(item, application, app.holder, duration=lease, token_counter=None)


def test_a_failed_slice_is_decided_about_with_its_error_and_remedy(shop: InProcess) -> None:
    (bronze(shop) / NEW).write_text("id\n1\n")
    shop.json("manifest", "discover")
    error = {"message": "7 is no date", "remedy": "Mend it.", "code": "slice"}
    with app_of(shop.folder) as app:
        app.ledger.failed(claim(app, shop, NEW), {"error": error})
    (step,) = status(shop)["steps"]
    assert step["reason"]["params"] == {"slice": NEW, "why": "7 is no date", "remedy": "Mend it."}
    assert [each["argv"] for each in step["choices"]] == [
        ["decide", f"orders/{NEW}", verb] for verb in ("retry", "skip")
    ]
    shown = shop.run("status")
    assert ("do: Mend it." in shown.out, shown.code) == (True, 4)
    (bronze(shop) / NEW).unlink()
    assert steps(shop) == [("failed_slice", NEW, "needs_decision")]
    decided(shop, f"orders/{NEW}", "skip")
    assert steps(shop) == []


def test_a_slice_with_damaged_records_is_broken_and_no_decision_mends_it(shop: InProcess) -> None:
    (bronze(shop) / NEW).write_text("id\n1\n")
    shop.json("manifest", "discover")
    (manifest,) = shop.folder.rglob("manifest.db")
    with closing(sqlite3.connect(manifest)) as connection, connection:
        connection.execute(f"UPDATE lakewright_records SET payload = 'no json' WHERE item_id LIKE '%{NEW}'")
    with closing(SqliteStore(manifest)) as store:
        store.rebuild()
    (step,) = status(shop)["steps"]
    assert (step["reason"]["code"], step["subject"]["part"], step["status"]) == ("broken", NEW, "blocked")
    assert step["choices"] == []
    assert f"`lakewright manifest show orders/{NEW}`" in step["reason"]["params"]["remedy"]


def test_a_processed_slice_that_left_bronze_is_noticed(shop: InProcess) -> None:
    """A2: a slice that vanished is not passed over."""
    (bronze(shop) / SECOND).unlink()
    assert (steps(shop), findings(shop)) == ([], [("vanished", {"slices": [SECOND]})])


@pytest.mark.parametrize("is_late", [False, True])
def test_a_slice_that_waits_and_left_bronze_is_to_be_skipped_or_brought_back(
    shop: InProcess, is_late: bool
) -> None:
    """A run would fail it."""
    name = "2024-05-01b.csv" if is_late else NEW
    (bronze(shop) / name).write_text("id\n1\n")
    shop.json("manifest", "discover")
    (bronze(shop) / name).unlink()
    (bronze(shop) / "2024-05-05.csv").write_text("id\n1\n")
    next_state = ("new_slices", "", "ready") if is_late else ("failed_before", "", "waits")
    assert steps(shop) == [("slice_gone", name, "blocked"), next_state]
    decided(shop, f"orders/{name}", "skip")
    assert steps(shop) == [("new_slices", "", "ready")]
    planned = shop.run("plan", "daily", "build").all
    assert (name in planned, "2024-05-05.csv" in planned) == (False, True), planned


def test_a_slice_that_another_program_announced_is_still_to_come(shop: InProcess) -> None:
    item = (bronze(shop) / NEW).as_uri()
    assert shop.run("manifest", "add", item, "--as", "acme/landing").code == 0
    assert steps(shop) == []


def test_a_skipped_slice_that_was_corrected_is_noticed_until_somebody_decides(shop: InProcess) -> None:
    """A2: an undone slice is skipped; its corrected file would otherwise be passed over for ever."""
    (bronze(shop) / NEW).write_text("id\n1\n")
    shop.json("manifest", "discover")
    assert shop.run("manifest", "skip", f"orders/{NEW}").code == 0
    assert (steps(shop), findings(shop)) == ([], [])
    (bronze(shop) / NEW).write_text("id\n1\n2\n")
    assert findings(shop) == [("skipped_changed", {"slice": NEW})]
    decided(shop, f"orders/{NEW}", "keep")
    assert (steps(shop), findings(shop)) == ([], [])
    (bronze(shop) / NEW).write_text("id\n1\n2\n3\n")
    assert findings(shop) == [("skipped_changed", {"slice": NEW})]
    decided(shop, f"orders/{NEW}", "take")
    assert (steps(shop), findings(shop)) == ([("new_slices", "", "ready")], [])


def test_what_is_incomplete_waits_and_what_can_not_be_read_is_noticed(shop: InProcess) -> None:
    (bronze(shop) / "s3" / "_temporary").mkdir(parents=True)
    (bronze(shop) / "s3" / "part.csv").write_text("id\n")
    (bronze(shop) / "s4.csv").symlink_to(bronze(shop) / "nowhere")
    assert steps(shop) == [("incomplete", "", "waits")]
    ((code, params),) = findings(shop)
    assert (code, params["slice"]) == ("unreadable", "s4.csv")


def test_slices_after_one_that_only_changed_a_moment_ago_wait_for_it(shop: InProcess) -> None:
    """A run of a job leaves them; the plan was to process them."""
    later = bronze(shop) / "2024-05-05.csv"
    for name in (NEW, later.name):
        (bronze(shop) / name).write_text("id\n1\n")
    os.utime(later, (1, 1))
    found = shop.json("status", "--conf", "lakewright.bronze.settle=1h")["steps"]
    assert [(each["reason"]["code"], each["subject"]["slices"]) for each in found] == [
        ("locked", [NEW]),
        ("failed_before", [later.name]),
        ("incomplete", []),
    ]


def test_a_folder_or_a_log_that_is_gone_is_broken_and_not_planned(shop: InProcess) -> None:
    (bronze(shop) / NEW).write_text("id\n1\n")
    log = shop.folder / "lake/silver/orders/_delta_log"
    log.rename(shop.folder / "log")
    (step,) = status(shop)["steps"]
    assert (step["action"], step["status"], step["reason"]["code"]) == ("hold", "blocked", "broken")
    assert "no Delta log" in step["reason"]["params"]["why"]
    assert shop.run("apply", "--dry-run").out == shop.run("plan").out
    (shop.folder / "log").rename(log)
    shutil.rmtree(bronze(shop))
    (step,) = status(shop)["steps"]
    assert step["reason"]["params"]["error"] == "bronze_unreadable"
    assert step["reason"]["params"]["remedy"] in shop.run("status").out


def test_a_table_that_lacks_data_files_is_broken(shop: InProcess) -> None:
    next((shop.folder / "lake/silver/orders").glob("*.parquet")).unlink()
    (step,) = status(shop)["steps"]
    assert (step["reason"]["code"], step["subject"]["name"]) == ("broken", "orders")


def test_a_renamed_entity_leaves_slices_and_another_folder_makes_open_ones_strays(shop: InProcess) -> None:
    (bronze(shop) / NEW).write_text("id\n1\n")
    shop.json("manifest", "discover")
    declare(shop.folder, 'bronze_path: "${entity}"', "bronze_path: elsewhere")
    shutil.copytree(bronze(shop), bronze(shop).with_name("elsewhere"))
    (step,) = status(shop)["steps"]
    assert step["reason"]["params"]["error"] == "lake_moved"
    record_move = ("manifest", "move", bronze(shop).as_uri(), bronze(shop).with_name("elsewhere").as_uri())
    assert shop.run(*record_move).code == 0
    assert ("elsewhere", {"place": bronze(shop).as_uri(), "slices": 1}) in findings(shop)
    declare(shop.folder, "orders", "sales")
    (told,) = [each for each in status(shop)["findings"] if each["code"] == "undeclared"]
    application = "lakewright/shop/orders:orders"
    assert (told["subject"]["name"], told["params"]["application"]) == ("orders", application)
    assert told["commands"] == [["manifest", "ls", "--application", application]]


def test_slices_that_a_declared_entity_has_processed_too_are_not_undeclared(shop: InProcess) -> None:
    declare(shop.folder, "orders", "sales")
    declare(shop.folder, "${entity}", "orders")
    assert "undeclared" in [code for code, _ in findings(shop)]
    record_processed(shop.folder, "sales")
    assert "undeclared" not in [code for code, _ in findings(shop)]


@pytest.mark.parametrize("is_emptied", [False, True])
def test_the_table_of_a_project_with_another_name_is_broken_unless_it_is_empty(
    shop: InProcess, is_emptied: bool
) -> None:
    """Each slice was applied once more, on top of its own rows."""
    silver = DeltaTable(shop.folder / "lake/silver/orders")
    numbered = CommitProperties(app_transactions=[Transaction("lakewright/shop/orders:orders", 3)])
    write_deltalake(silver, silver.to_pyarrow_table(), mode="overwrite", commit_properties=numbered)
    sign_last_commit(shop.folder / "lake/silver/orders")
    project = shop.folder / "project.yml"
    project.write_text(project.read_text().replace("shop", "store"))
    if is_emptied:
        silver.delete()
    found = [each["reason"]["params"].get("error") for each in status(shop)["steps"]]
    assert ("lake_moved" in found) is not is_emptied


def test_a_disabled_entity_has_no_steps_and_its_new_slices_are_noticed(shop: InProcess) -> None:
    declare(shop.folder, "    id: 1\n", "    id: 1\n    enabled: false\n")
    assert (steps(shop), findings(shop)) == ([], [])
    (bronze(shop) / NEW).write_text("id\n1\n")
    assert (steps(shop), findings(shop)) == ([], [("disabled", {"slices": [NEW]})])
    shutil.rmtree(bronze(shop))
    assert [code for code, _ in findings(shop)] == ["unknown"]


def test_bad_rows_are_noticed_as_long_as_they_lie_in_quarantine(shop: InProcess) -> None:
    declare(shop.folder, "    columns:", "    settings: {on_bad_rows: quarantine}\n    columns:")
    (bronze(shop) / NEW).write_text("id\n1\n")
    shop.json("manifest", "discover")
    with app_of(shop.folder) as app:
        app.ledger.processed(claim(app, shop, NEW), {"quarantined": 2})
        aside = Path(app.project.entity("orders").places(app.project.lake).quarantine)
    assert "bad_rows" not in [code for code, _ in findings(shop)]
    (aside / NEW).mkdir(parents=True)
    assert ("bad_rows", {"rows": 2, "slices": [NEW], "folder": str(aside)}) in findings(shop)
    declare(shop.folder, "    settings: {on_bad_rows: quarantine}\n", "")
    assert ("bad_rows", {"rows": 2, "slices": [NEW], "folder": str(aside)}) in findings(shop)


def test_a_failed_item_of_another_program_is_noticed_with_the_program(shop: InProcess) -> None:
    scanner = Application.named("acme/scanner")
    with app_of(shop.folder) as app:
        assert shop.run("manifest", "add", "x", "--as", "acme/landing").code == 0
        held = app.ledger.acquire(
            "x", scanner, app.holder, duration=timedelta(seconds=60), token_counter=None
        )
        app.ledger.failed(held, {"error": {"message": "seven is no amount"}})
    (told,) = status(shop)["findings"]
    assert (told["code"], told["subject"]) == (
        "failed_item",
        {"kind": "application", "name": "acme/scanner", "part": "x", "instance": {}, "slices": []},
    )
    assert told["severity"] == "error"
    assert told["commands"] == [["manifest", "show", "x"]]


@pytest.mark.parametrize("strategy", ["historic", "merge"])
def test_new_slices_are_blocked_by_one_without_a_time_until_it_is_skipped(
    tmp_path: Path, strategy: str
) -> None:
    bad = "2026-13-40.csv"
    shop = shop_with(tmp_path, BY_SLICE, "2026-01-01.csv", bad, strategy=strategy)
    declare(tmp_path, "parameters: [{name: day, type: date}], ", "")
    (step,) = status(shop)["steps"]
    assert (step["status"], step["reason"]["code"]) == ("blocked", "broken")
    assert step["subject"]["slices"] == ["2026-01-01.csv", bad]
    assert bad in step["reason"]["params"]["why"]
    assert shop.run("apply", "--dry-run").out.count("NEEDS_YOU=1 DUE=0") == 1
    assert shop.run("manifest", "skip", f"orders/{bad}").code == 0
    assert steps(shop) == [("new_slices", "", "ready")]


def test_an_entity_whose_place_has_a_parameter_of_a_job_is_not_looked_at(shop: InProcess) -> None:
    declare(shop.folder, 'bronze_path: "${entity}"', 'bronze_path: "${region}"')
    assert [code for code, _ in findings(shop)] == ["unknown"]


def test_an_undo_in_a_copied_lake_says_that_the_lake_was_moved(shop: InProcess, tmp_path: Path) -> None:
    """It said that the slice is unknown, where a job said what had happened."""
    copy = InProcess(shutil.copytree(shop.folder, tmp_path / "copy"))
    assert [each["reason"]["params"]["error"] for each in status(copy)["steps"]] == ["lake_moved"]
    done = copy.run("undo", "orders", FIRST, "--dry-run", "-o", "json")
    assert "lake_moved" in done.out, done.all


def test_a_version_of_another_writer_is_no_slice_in_json() -> None:
    finding = Finding(Reason(Code.FOREIGN_ROWS, {"version": 1}), Subject("orders", "version 1"))
    (found,) = plan_document(Plan(findings=(finding,)))["findings"]
    assert (found["subject"]["part"], found["subject"]["slices"]) == ("version 1", [])
