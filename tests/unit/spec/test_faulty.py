"""Definitions that no fault touches can be used although others are faulty: rules of `serve`, §2."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lakewright.app import App
from lakewright.errors import SpecError
from lakewright.usecases.triggers import withheld_triggers

SHOP = {
    "connections": {"shop": {}},
    "entities": {
        "orders": {"id": 1, "connection": "shop", "processtype": "full"},
        "people": {"id": 2, "connection": "shop", "processtype": "full"},
    },
    "targets": {
        "orders_target": {"kind": "entity", "entity": "orders"},
        "people_target": {"kind": "entity", "entity": "people"},
    },
    "jobs": {"daily": {"targets": ["orders_target"]}, "weekly": {"targets": ["people_target"]}},
    "triggers": {
        "nightly": {"job": "daily", "phase": "build", "cron": "@daily"},
        "on_sunday": {"job": "weekly", "phase": "build", "cron": "@weekly"},
        "arrivals": {"entities": ["orders", "people"], "on": "arrival"},
        "of_people": {"job": "daily", "phase": "build", "on": "processed", "of": ["people"]},
    },
}
STOCK = "connections: {wares: {}}\nentities:\n  stock: {id: 7, connection: wares, processtype: full}\n"
USE = "triggers:\n  of_stock: {entities: [stock], on: arrival}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project.yml").write_text(
        "name: shop\nmodules: [shop.yml, stock.yml, use.yml]\nlake: {root_folder: lake}\n"
    )
    (tmp_path / "shop.yml").write_text(yaml.safe_dump(SHOP))
    (tmp_path / "stock.yml").write_text(STOCK)
    (tmp_path / "use.yml").write_text(USE)
    return tmp_path


def opened(folder: Path, *, despite_faults: bool = True) -> App:
    return App.open(folder, environ={}, despite_faults=despite_faults)


def faulty(app: App) -> set[str]:
    return {f"{category} {name}" for category, name in app.project.faulty}


def test_without_faults_nothing_is_left_out(folder: Path) -> None:
    app = opened(folder)
    assert (app.project.faults, app.project.faulty) == ((), {})


def test_what_refers_to_a_faulty_entity_is_left_out_and_the_rest_can_be_used(folder: Path) -> None:
    shop = folder / "shop.yml"
    shop.write_text(shop.read_text().replace("    id: 2", "    idd: 2"))
    with pytest.raises(SpecError):
        opened(folder, despite_faults=False)
    app = opened(folder)
    assert faulty(app) == {
        "entity people",
        "mapping people",
        "mapping people.history",
        "target people_target",
        "job weekly",
        "trigger on_sunday",
        "trigger of_people",
    }
    assert set(app.project.entities) == {"orders", "stock"}
    assert app.project.trigger("arrivals").entities == ("orders",)
    with pytest.raises(SpecError, match=r"entity 'people' can't be used"):
        app.project.entity("people")
    with pytest.raises(SpecError, match="trigger 'on_sunday' can't be used"):
        app.project.trigger("on_sunday")


@pytest.mark.parametrize(
    "text", ["entities:\n  stock: {id: 7\n", "- entities\n", "entities: 3\n", STOCK + "entities: {}\n"]
)
def test_a_module_that_cannot_be_read_leaves_entities_of_other_modules(folder: Path, text: str) -> None:
    (folder / "stock.yml").write_text(text)
    app = opened(folder)
    assert "trigger of_stock" in faulty(app)
    assert set(app.project.entities) == {"orders", "people"}
    assert {"nightly", "on_sunday", "arrivals", "of_people"} == set(app.project.triggers)
    with pytest.raises(SpecError, match="stock"):
        app.project.entity("stock")
    assert [str(each.lane) for each in withheld_triggers(app.project)] == ["of_stock"]


def test_of_a_trigger_only_the_entities_wait_whose_module_cannot_be_read(folder: Path) -> None:
    (folder / "use.yml").write_text("triggers:\n  all: {entities: [orders, stock], on: arrival}\n")
    (folder / "stock.yml").write_text("entities:\n  stock: {id: 7\n")
    project = opened(folder).project
    assert project.trigger("all").entities == ("orders",)
    assert [str(each.lane) for each in withheld_triggers(project)] == ["all (stock)"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("stock.yml", "lake: {root_folder: other\n" + STOCK),
        ("stock.yml", "environment:\n  - a=b\n  c: d\n" + STOCK),
        ("stock.yml", "{config: [a=b], entities: {stock: 3"),
        ("stock.json", '{"environment": {"root_folder": "x",}'),
        ("stock.yml", "enviroment: [a=b]\n" + STOCK),
        ("stock.yml", "environment: [a=b]\n" + STOCK + "environment: [c=d]\n"),
        ("stock.yml", None),
        ("project.yml", "name: shop\nmodules: [shop.yml]\nlake: {root_folder: lake\n"),
        ("shop.yml", b"\xff\xfe\x00broken"),
    ],
)
def test_a_fault_that_may_concern_the_whole_project_leaves_nothing(
    folder: Path, file: str, text: str | bytes | None
) -> None:
    if file.endswith(".json"):
        (folder / "project.yml").write_text(
            "name: shop\nmodules: [shop.yml, stock.json]\nlake: {root_folder: lake}\n"
        )
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SpecError):
        opened(folder)


def test_two_definitions_that_contradict_each_other_are_both_left_out(folder: Path) -> None:
    (folder / "stock.yml").write_text(STOCK.replace("id: 7", "id: 1"))
    assert {"entity stock", "entity orders", "job daily"} <= faulty(opened(folder))
    (folder / "stock.yml").write_text(STOCK + "  orders: {id: 8, connection: wares, processtype: full}\n")
    app = opened(folder)
    assert "entity orders" in faulty(app)
    assert set(app.project.entities) == {"people", "stock"}


def test_a_key_that_occurs_twice_touches_the_definition_around_it(folder: Path) -> None:
    (folder / "stock.yml").write_text(
        STOCK + "  more:\n    id: 8\n    id: 9\n    connection: wares\n    processtype: full\n"
    )
    app = opened(folder)
    assert faulty(app) == {"entity more", "mapping more", "mapping more.history"}
    (folder / "stock.yml").write_text(
        STOCK + "  more: {id: 8, connection: wares, processtype: full}\n" + STOCK.splitlines()[2]
    )
    assert "entity stock" in faulty(opened(folder))
    assert "entity more" not in faulty(opened(folder))


def test_a_reference_with_an_expression_may_be_any_definition_of_its_category(folder: Path) -> None:
    (folder / "use.yml").write_text(USE + "jobs: {each: {parameters: [{name: t}], targets: '${t}_target'}}\n")
    assert faulty(opened(folder)) == set()
    shop = folder / "shop.yml"
    shop.write_text(shop.read_text().replace("    id: 2", "    idd: 2"))
    assert "job each" not in faulty(opened(folder)), (
        "its targets are known when it runs, and those that are faulty wait"
    )
    (folder / "use.yml").write_text(USE + "mappings: {m: {kind: alias, input: '${t}'}, bad: {kind: none}}\n")
    assert "mapping m" in faulty(opened(folder))


def test_a_job_of_which_one_target_is_faulty_can_be_used(folder: Path) -> None:
    (folder / "use.yml").write_text(
        USE
        + "jobs:\n  both: {targets: [orders_target, people_target, typo_target]}\n"
        + "  none: {targets: typo_target}\n"
    )
    shop = folder / "shop.yml"
    shop.write_text(shop.read_text().replace("    id: 2", "    idd: 2"))
    app = opened(folder)
    assert "both" in app.project.jobs
    assert {"target typo_target", "target people_target", "job none"} <= faulty(app)
    assert set(app.project.faulty_targets) == {"people_target"}


def test_what_is_made_from_a_faulty_template_is_left_out(folder: Path) -> None:
    template = "templates: {t: {kind: relation, parametres: [], template: {kind: delta, location: lake/x}}}\n"
    used = "relations: {a: {kind: template/t}, b: {kind: delta, location: lake/y}}\n"
    (folder / "use.yml").write_text(USE + template + used)
    app = opened(folder)
    assert faulty(app) == {"template t", "relation a"}
    assert set(app.project.relations) == {"b"}
