"""A project is made, checked and followed by Dagster itself."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest

from lakewright_dagster.definitions import build_definitions

PAGE = (Path(__file__).parents[4] / "docs" / "deployment" / "dagster.md").read_text("utf-8")

SOME_ORDER = dg.AssetSelection.checks(dg.AssetCheckKey(dg.AssetKey(["shop", "totals"]), "some_order"))
Numbers = dict[tuple[str, str | None], tuple[object, object]]


def block(title: str) -> str:
    """Return the block of the page whose first line is a comment with this title."""
    found = re.search(rf"```\w+\n# {re.escape(title)}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, title
    return found[1]


def land(shop: Path, name: str, *rows: str) -> None:
    folder = shop / "incoming" / "orders"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(("id,amount", *rows)) + "\n", "utf-8")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The project of the page, with two slices."""
    shop = tmp_path / "shop"
    land(shop, "2024-05-01.csv", "1,10", "2,20")
    land(shop, "2024-05-02.csv", "2,25", "3,5")
    (shop / "project.yml").write_text(block("shop/project.yml"), "utf-8")
    return shop


def made(result: dg.ExecuteInProcessResult) -> Numbers:
    """Return the rows and changed rows of each asset, or partition of one, that a run has made."""
    events = [event.materialization for event in result.all_events if event.is_step_materialization]
    numbers: Numbers = {}
    for each in events:
        values = {key: value.value for key, value in each.metadata.items()}
        name = each.asset_key.path[-1]
        numbers[name, each.partition] = (
            values.get("rows_in", values.get("dagster/row_count")),
            values.get("changed"),
        )
    return numbers


def checked(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], bool]:
    found = result.get_asset_check_evaluations()
    return {(each.asset_key.path[-1], each.check_name): each.passed for each in found}


def test_the_example_makes_and_checks_assets_and_a_slice_that_fails_fails_its_run(shop: Path) -> None:
    names: dict[str, dg.Definitions] = {}
    exec(block("definitions.py").replace("/srv/shop", str(shop)), names)
    defs = names["defs"]
    assert defs.resolve_schedule_def("nightly").cron_schedule == "0 3 * * *"
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process()
    assert made(result) == {("orders", None): (4, 4), ("totals", None): (1, None)}
    assert checked(result) == {
        ("orders", "verify"): True,
        ("totals", "verify"): True,
        ("totals", "some_order"): True,
    }
    alone = dg.materialize(list(defs.assets or ()), selection=SOME_ORDER)
    assert (made(alone), checked(alone)) == ({}, {("totals", "some_order"): True})
    land(shop, "2024-05-03.csv", "4,many")
    failed = job.execute_in_process(raise_on_error=False)
    assert not failed.success
    assert made(failed) == {}
    assert checked(failed) == {}


def test_slices_are_partitions_and_the_sensor_runs_what_is_built_from_new_ones(shop: Path) -> None:
    defs = build_definitions(shop, partitions="slices")
    (assets,), (sensor,) = list(defs.assets or ()), list(defs.sensors or ())
    with dg.DagsterInstance.ephemeral() as instance:

        def tick() -> list[dg.RunRequest]:
            found = sensor()
            for request in found.dynamic_partitions_requests:
                instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
            return list(found.run_requests)

        (request,) = tick()
        assert instance.get_dynamic_partitions("shop/orders") == ["2024-05-01.csv", "2024-05-02.csv"]
        result = dg.materialize(
            [assets],
            instance=instance,
            partition_key=request.partition_key,
            selection=request.asset_selection,
        )
        assert made(result) == {
            ("orders", "2024-05-01.csv"): (2, 2),
            ("orders", "2024-05-02.csv"): (2, 2),
            ("totals", None): (1, None),
        }
        assert tick() == []


def test_values_of_a_parameter_are_partitions_and_a_run_needs_one(shop: Path) -> None:
    text = (shop / "project.yml").read_text("utf-8")
    declared = text.replace("daily: {", "daily: {parameters: [{name: day, type: date}], ")
    (shop / "project.yml").write_text(declared, "utf-8")
    with pytest.raises(ValueError, match=r"1 parameters \(day\)"):
        build_definitions(shop)
    defs = build_definitions(shop, partitions=dg.DailyPartitionsDefinition("2024-05-01"))
    assets = list(defs.assets or ())
    result = dg.materialize(assets, partition_key="2024-05-02")
    assert made(result)["orders", "2024-05-02"] == (4, 4)
    without = dg.materialize(assets, selection=SOME_ORDER, raise_on_error=False)
    assert not without.success
