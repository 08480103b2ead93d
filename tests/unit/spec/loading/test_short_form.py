"""The short form stands for the long ones: see the rules of the short form, "A whole project"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.projects import KINDS

from lakewright.app import App
from lakewright.errors import SpecError
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions
from lakewright.spec.loading.short_form import CONNECTION
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.project import Project
from lakewright.usecases.declarations import long_form

SHOP = """
name: shop
entities:
  customers: {from: landing/customers/*.csv, key: id, strategy: historic, columns: {born: date}}
  orders:
    from: s3://acme/orders/{date}/*.parquet
    key: [shop, number]
    strategy: merge
    deletes: snapshot
tables:
  revenue_by_day:
    sql: SELECT day, sum(amount) AS revenue FROM orders GROUP BY day
    partition_by: day
    checks: {day: [notNull, unique]}
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "project.yml").write_text(text)
    return folder


def loaded(folder: Path, text: str) -> Project:
    return load_project(write(folder, text), LoadOptions(kinds=KINDS, environ={}))


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loaded(folder, text)
    return [str(fault) for fault in caught.value.faults]


def test_twelve_lines_are_a_whole_project(tmp_path: Path) -> None:
    project = loaded(tmp_path, SHOP)
    customers, orders = project.entities["customers"], project.entities["orders"]
    assert (customers.strategy, customers.business_keys) == (Strategy.HISTORIC, ("id",))
    assert (orders.strategy, orders.business_keys) == (Strategy.MERGE, ("shop", "number"))
    assert (orders.settings.delete_missing, orders.settings.delete_scope) == (True, "full")
    assert (customers.settings.slice_format.kind, orders.settings.slice_format.kind) == ("csv", "parquet")
    places = customers.places(project.lake)
    assert places.slices.pattern == f"{tmp_path}/landing/customers/*.csv"
    assert str(places.silver) == f"{tmp_path}/lake/silver/customers"
    assert orders.places(project.lake).slices.pattern == "s3://acme/orders/{date}/*.parquet"
    assert list(project.targets) == ["customers", "orders", "revenue_by_day"]
    assert project.jobs["all"].targets == ("customers", "orders", "revenue_by_day")
    assert project.relations["revenue_by_day"].raw["location"] == "${project.lake}/gold/revenue_by_day"
    assert {"orders", "orders.history", "revenue_by_day", "revenue_by_day.query"} <= set(project.mappings)


@pytest.mark.parametrize(
    ("declared", "expression", "column"),
    [
        ("", "${slice.time}", None),
        ("time: now", None, None),
        ("time: dd.MM.yyyy", "${slice.date('dd.MM.yyyy')}", None),
        ("time: '${slice.date}T06:00:00'", "${slice.date}T06:00:00", None),
        ("time: {from: seen}", None, "seen"),
    ],
)
def test_versions_are_stamped_by_the_date_in_the_name_unless_something_else_is_declared(
    tmp_path: Path, declared: str, expression: str | None, column: str | None
) -> None:
    text = f"name: x\nentities:\n  e:\n    key: id\n    {declared}\n"
    settings = loaded(tmp_path, text).entities["e"].settings
    assert (settings.slice_time, settings.time_column) == (expression, column)


@pytest.mark.parametrize(
    "declared",
    [
        "time: {form: seen}",
        "time: {from: seen, zone: UTC}",
        "time: {from: }",
        "time: [seen]",
        "time: seen",
        "time: {from: id}",  # its type is no time
        "time: {from: seen}\n    columns: {seen: {type: date, optional: true}}",
    ],
)
def test_what_gives_no_slice_a_time_is_refused(tmp_path: Path, declared: str) -> None:
    text = f"name: x\nentities:\n  e:\n    key: id\n    {declared}\n"
    text += "" if "columns" in declared else "    columns: {id: long}\n"
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path, text)
    (fault,) = caught.value.faults
    assert fault.location is not None
    assert fault.location.line in (3, 5)


FIELD = st.sampled_from(["id", "name", "amount", "day", "city"])
TYPES = st.sampled_from(["string", "long", "decimal(10,2)", "date", "timestamp"])
COLUMN: st.SearchStrategy[Any] = TYPES | st.fixed_dictionaries(
    {"type": TYPES}, optional={"description": st.just("what it is"), "optional": st.just("true")}
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "on_bad_rows": st.sampled_from(["fail", "quarantine"]),
        "late_slices": st.sampled_from(["hold", "place", "end", "skip"]),
        "time": st.sampled_from(["now", "name", "yyyy.MM.dd"]),
        "format": st.sampled_from(["csv", {"kind": "csv", "separator": ";"}]),
        "allow_empty": st.sampled_from(["true", "false"]),
    },
)


@st.composite
def short_entities(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.lists(FIELD, max_size=2, unique=True))
    strategy = draw(st.sampled_from(["merge", "historic", "full"] if keys else ["full"]))
    columns = draw(st.dictionaries(FIELD, COLUMN, max_size=4))
    for name in keys:
        if isinstance(columns.get(name), dict):
            columns[name].pop("optional", None)
    found: dict[str, Any] = {"key": keys, "strategy": strategy, "columns": columns, **draw(SETTINGS)}
    if strategy != "full" and draw(st.booleans()):
        found["deletes"] = "snapshot"
    if draw(st.booleans()):
        found["order_by"] = "day" if keys and "day" not in keys else None
        if isinstance(columns.get("day"), dict):
            columns["day"].pop("optional", None)
    return {key: value for key, value in found.items() if value}


def written_out(short: dict[str, Any]) -> dict[str, Any]:
    """Write an entity out by hand, as somebody would who knows only the long form."""
    names = dict.fromkeys([*short.get("columns", {}), *short.get("key", [])])
    columns = []
    for name in names:
        declared = short.get("columns", {}).get(name, {})
        declared = {"type": declared} if isinstance(declared, str) else dict(declared)
        column: dict[str, Any] = {"name": name, **declared}
        if "type" in column:
            column["datatype"] = column.pop("type")
        if name in short.get("key", []):
            column["fieldroles"] = ["businesskey"]
        columns.append(column)
    own = ("key", "strategy", "columns", "deletes", "order_by")
    places = {"bronze_path": "${entity}", "silver_path": "${destination}", "time": "name"}
    set_ = places | {key: value for key, value in short.items() if key not in own}
    if "deletes" in short:
        set_ |= {"delete_missing": "true", "delete_scope": "full"}
    if "order_by" in short:
        set_["sequence_by"] = short["order_by"]
    return {
        "id": "e",
        "connection": CONNECTION,
        "processtype": short["strategy"],
        "columns": columns,
        "settings": set_,
    }


def entity_of(folder: Path, declared: dict[str, Any], **more: Any) -> Entity:
    project = {"name": "x", "entities": {"e": declared}, **more}
    return loaded(folder, yaml.safe_dump(project, sort_keys=False)).entities["e"]


@given(short=short_entities())
@settings(max_examples=100, deadline=None)
def test_an_entity_is_what_its_long_form_is(tmp_path_factory: pytest.TempPathFactory, short: Any) -> None:
    folder = tmp_path_factory.mktemp("p")
    long = entity_of(folder, written_out(short), connections={CONNECTION: {}})
    assert entity_of(folder, short).model_dump() == long.model_dump()


@pytest.mark.parametrize(
    ("entity", "told"),
    [
        ("{key: id, strategi: merge}", "unknown key 'strategi' (did you mean 'strategy'?)"),
        ("{strategy: merge}", "the strategy merge needs a key"),
        ("{key: id, deletes: sometimes}", "deletes: 'sometimes' is none of"),
        ("{key: id, columns: {a: dat}}", "columns.a.type: "),
        ("{key: id, from: 'in/{day}/x.csv'}", "unknown placeholder {day}"),
        ("{key: id, time: noon}", "time: 'noon' is not name"),
    ],
)
def test_a_wrong_entity_is_a_fault_with_its_place(tmp_path: Path, entity: str, told: str) -> None:
    (found,) = faults(tmp_path, f"name: x\nentities:\n  e: {entity}\n")
    assert told in found
    assert found.startswith("project.yml:3: ")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("{}", "a table needs either sql or python"),
        ("{sql: SELECT 1, python: 'a:b'}", "a table needs either sql or python"),
        ("{sql: SELECT 1, check: {}}", "unknown key 'check' (did you mean 'checks'?)"),
        ("{sql: SELECT a, count(*) AS n}", "unknown key 'count(*) AS n'"),
        ("{sql: SELECT * FROM nothing}", "there is no mapping 'nothing'"),
    ],
)
def test_a_wrong_table_is_a_fault_with_its_place(tmp_path: Path, table: str, told: str) -> None:
    (found,) = faults(tmp_path, f"name: x\ntables:\n  t: {table}\n")
    assert told in found
    assert found.startswith("project.yml:3: ")


def test_lines_of_faults_are_those_of_the_short_form(tmp_path: Path) -> None:
    columns = "      a: date\n      b: {type: date, unit: ms}\n"
    text = f"name: x\nentities:\n  e:\n    key: id\n    columns:\n{columns}"
    (found,) = faults(tmp_path, text)
    assert found.startswith("project.yml:7: entity 'e'")


def test_a_table_and_an_entity_of_one_name_are_a_fault(tmp_path: Path) -> None:
    (found,) = faults(tmp_path, "name: x\nentities: {a: {key: id}}\ntables: {a: {sql: SELECT 1}}\n")
    assert "has the name of another entity or table" in found


def test_both_forms_stand_in_one_project(tmp_path: Path) -> None:
    text = """
name: x
connections: {crm: {settings: {bronze_path: "in/${entity}"}}}
entities:
  a: {key: id}
  b: {id: 2, connection: crm, processtype: full}
targets:
  a: {kind: entity, entity: a, processingTime: "${slice.date}"}
jobs: {daily: {targets: [a]}}
"""
    project = loaded(tmp_path, text)
    assert set(project.entities) == {"a", "b"}
    assert project.targets["a"].raw["processingTime"] == "${slice.date}"
    assert set(project.jobs) == {"daily"}


def test_a_flag_says_which_records_are_deleted(tmp_path: Path) -> None:
    columns = "{gone: {values: {J: true, N: false}}}"
    text = f"name: x\nentities: {{a: {{key: id, deletes: flag gone, columns: {columns}}}}}\n"
    (flag,) = [c for c in loaded(tmp_path, text).entities["a"].columns if c.source == "gone"]
    assert (flag.silver, flag.datatype and flag.datatype.ddl) == ("dlf_deleted", "boolean")


def test_a_job_of_all_targets_leaves_out_those_with_parameters(tmp_path: Path) -> None:
    text = """
name: x
tables:
  plain: {sql: SELECT 1 AS n}
  daily: {sql: "SELECT '$day' AS d"}
"""
    project = loaded(tmp_path, text)
    assert project.jobs["all"].targets == ("plain",)


def test_the_long_form_that_is_shown_stands_for_the_short_one(tmp_path: Path) -> None:
    short = App.open(write(tmp_path / "short", SHOP), environ={})
    sections: dict[str, Any] = {"name": "shop"}
    for name in ("customers", "orders", "revenue_by_day"):
        for section, entries in long_form(short, name).items():
            sections[section] = {**sections.get(section, {}), **entries}
    long = App.open(write(tmp_path / "long", yaml.safe_dump(sections)), environ={}).project
    for name, entity in short.project.entities.items():
        assert long.entities[name].model_dump() == entity.model_dump()
    for category in ("mapping", "relation", "target"):
        known = short.project.definitions(category)
        assert {name: each.raw for name, each in long.definitions(category).items()} == {
            name: each.raw for name, each in known.items()
        }
