"""What `status` says of slices whose entity, or whose place, is another one now."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.commands import InProcess
from tests.silver import sign_last_commit
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed, record_processed

from lakewright.app import App
from lakewright.usecases.undeclared import undeclared_entities


def test_a_renamed_entity_leaves_slices_that_are_told_and_a_plan_that_makes_a_new_table(
    tmp_path: Path,
) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    assert json.loads(shop.run("status", "-o", "json").out)["undeclared"] == []
    model = tmp_path / "m.yml"
    declared = model.read_text()
    renamed = declared.replace("orders", "sales").replace("${entity}", "orders", 1)
    model.write_text(renamed)

    told = " ".join(shop.run("status").out.split())

    assert (
        "Recorded for entities that are not declared 1 orders: 3 processed slices If it was renamed," in told
    )
    assert "`lakewright manifest ls --application lakewright/shop/orders:orders` lists them" in told
    (found,) = json.loads(shop.run("status", "-o", "json").out)["undeclared"]
    application = "lakewright/shop/orders:orders"
    assert found == {"entity": "orders", "application": application, "processed": 3, "others": 0}
    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-01").out.split())
    assert "its slices were processed for orders, which the project does not declare" in planned

    # What has a fault may be the entity.
    model.write_text(renamed.replace("processtype", "processtyp", 1))
    assert list(undeclared_entities(App.open(tmp_path, environ={}, despite_faults=True))) == []

    model.write_text(renamed)
    record_processed(tmp_path, "sales")
    assert json.loads(shop.run("status", "-o", "json").out)["undeclared"] == []


def test_a_copied_lake_is_told_with_the_move_to_type(tmp_path: Path) -> None:
    """`status` said that no run had seen the slices; only the plan named the move."""
    processed(tmp_path / "a", "historic", BY_SLICE)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shop = InProcess(tmp_path / "b")

    page = " ".join(shop.run("status").out.split())

    assert "orders: 3 slices that no run has seen yet" in page
    assert (
        "a run would not take them: slices of lakewright/shop/orders:orders were processed in file:" in page
    )
    assert "no longer in bronze" not in page
    (arrived,) = json.loads(shop.run("status", "-o", "json").out)["arrived"]
    assert arrived["refused"]["code"] == "lake_moved"
    old, new = (f"{(tmp_path / name).as_uri()}/lake/bronze/orders" for name in "ab")
    assert f"`lakewright manifest move {old} {new}`" in arrived["refused"]["remedy"]
    assert shop.run("manifest", "move", old, new).code == 0
    assert json.loads(shop.run("status", "-o", "json").out)["arrived"] == []


@pytest.mark.parametrize("is_emptied", [False, True])
def test_a_renamed_project_processes_no_slice_into_the_table_that_holds_it(
    tmp_path: Path, is_emptied: bool
) -> None:
    """Each slice was applied once more, on top of its own rows."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    silver = DeltaTable(tmp_path / "lake/silver/orders")
    numbered = CommitProperties(app_transactions=[Transaction("lakewright/shop/orders:orders", 3)])
    write_deltalake(silver, silver.to_pyarrow_table(), mode="overwrite", commit_properties=numbered)
    sign_last_commit(tmp_path / "lake/silver/orders")
    assert json.loads(shop.run("status", "-o", "json").out)["rows_changed"] == []
    declared = tmp_path / "project.yml"
    declared.write_text(declared.read_text().replace("shop", "store"))
    if is_emptied:
        silver.delete()

    (planned,) = shop.json("plan", "daily", "build", "day=2024-05-01")["instances"]
    (build,) = [each["targets"][0] for each in planned["phases"] if each["phase"] == "BUILD"]
    told = json.loads(shop.run("status", "-o", "json").out)["rows_changed"]

    assert build["status"] == ("WOULD_RUN" if is_emptied else "BLOCKED")
    assert len(told) == (not is_emptied)
    if not is_emptied:
        assert (
            "holds slices of lakewright/shop/orders:orders, and none of lakewright/store/"
            in told[0]["message"]
        )
        assert told[0]["code"] == "lake_moved"
        refused = shop.run("process", "orders")
        assert (refused.code, told[0]["message"] in refused.err) == (4, True), refused.all


def test_a_disabled_entity_is_not_said_to_have_processed_everything(tmp_path: Path) -> None:
    """The plan said that every slice had been processed, and `status` that no run had seen the new one."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    model = tmp_path / "m.yml"
    model.write_text(model.read_text().replace("    id: 1\n", "    id: 1\n    enabled: false\n"))
    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")

    planned = " ".join(shop.run("plan", "daily", "verify", "day=2024-05-01").out.split())
    assert "CLEAN orders (entity): the entity is disabled" in planned
    assert "WOULD_RUN=0" in planned
    page = " ".join(shop.run("status").out.split())
    assert "orders: 1 slice that no run has seen yet: 2024-05-04.csv a run would not take it: the" in page
    assert "the entity is disabled do: Set enabled: true where it, or its connection, is declared." in page

    enabled = model.read_text().replace("    enabled: false\n", "")
    disabled = model.read_text()
    model.write_text(enabled)
    shop.json("manifest", "discover")
    model.write_text(disabled)
    page = " ".join(shop.run("status").out.split())
    assert "orders: 1 slice waits until the entity is enabled" in page


def test_a_plan_without_slices_says_that_the_declaration_no_longer_fits_the_table(tmp_path: Path) -> None:
    """Only `status` did, until the next slice came and was refused."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    model = tmp_path / "m.yml"
    model.write_text(model.read_text().replace("processtype: historic", "processtype: merge"))

    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-01").out.split())

    assert "no further slice will be processed: the table holds rows of the strategy historic" in planned
    assert "with `lakewright rebuild orders`" in planned
