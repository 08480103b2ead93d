"""dbt's snapshots become entities that adopt their tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import InProcess

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.usecases.draft_from_dbt import Question, draft_from_dbt, find_snapshots

IN_YAML = """
snapshots:
  - name: orders_snapshot
    relation: source('shop', 'orders')
    config:
      schema: snapshots
      unique_key: id
      strategy: timestamp
      updated_at: updated_at
      hard_deletes: invalidate
      dbt_valid_to_current: "to_date('9999-12-31')"
      snapshot_meta_column_names: {dbt_valid_from: start_date, dbt_valid_to: end_date}
  - name: described
    description: declared in SQL
"""

IN_SQL = """
{% snapshot customers_snapshot %}
{{
    config(
      target_schema='snapshots',
      unique_key=['shop', 'number'],
      strategy='check',
      check_cols=['name', 'city'],
      invalidate_hard_deletes=True,
      enabled=var('on'),
    )
}}
select * from {{ ref('stg_customers') }}
{% endsnapshot %}

{% snapshot keyed %}
{{ config(unique_key="shop || '-' || number", strategy='check', check_cols='all') }}
select 1
{% endsnapshot %}
"""


@pytest.fixture
def dbt(tmp_path: Path) -> Path:
    project = tmp_path / "dbt"
    for name, text in (
        ("dbt_project.yml", "name: shop\n"),
        ("snapshots/orders.yml", IN_YAML),
        ("snapshots/customers.sql", IN_SQL),
        ("target/compiled/orders.sql", IN_SQL),
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return project


def test_snapshots_are_found_in_yaml_and_sql(dbt: Path) -> None:
    found = {each.name: each for each in find_snapshots(dbt)}
    assert set(found) == {"orders_snapshot", "customers_snapshot", "keyed"}
    assert (found["orders_snapshot"].source, found["customers_snapshot"].source) == (
        "shop.orders",
        "stg_customers",
    )
    assert found["customers_snapshot"].unread == ("enabled",)


def test_each_becomes_an_entity_that_adopts_its_table(dbt: Path, tmp_path: Path) -> None:
    draft = draft_from_dbt(dbt, tmp_path / "lake")
    text = draft.file.read_text()
    draft.file.write_text(text.replace("# key: []", "key: [shop, number]"))
    entities = App.open(tmp_path / "lake", environ={}).project.entities
    orders, customers = entities["orders_snapshot"], entities["customers_snapshot"]
    assert (orders.business_keys, customers.business_keys) == (("id",), ("shop", "number"))
    assert orders.settings.sequence_by == "updated_at"
    assert (orders.settings.delete_scope, customers.settings.delete_missing) == ("full", True)
    assert {each.settings.silver_table for each in entities.values()} == {
        "snapshots.orders_snapshot",
        "snapshots.customers_snapshot",
        "keyed",
    }
    adopt = orders.settings.adopt
    assert adopt is not None
    assert (adopt.like, adopt.valid_from, adopt.valid_to, adopt.sentinel) == (
        "dbt_snapshot",
        "start_date",
        "end_date",
        ("9999-12-31",),
    )


def test_what_only_a_person_knows_is_a_question(dbt: Path, tmp_path: Path) -> None:
    asked = {
        (each["entity"], each["code"])
        for each in draft_from_dbt(dbt, tmp_path / "lake").as_json()["questions"]
    }
    assert asked == {
        ("orders_snapshot", Question.FILES),
        ("customers_snapshot", Question.FILES),
        ("customers_snapshot", Question.CHECKED),
        ("customers_snapshot", Question.UNREAD),
        ("keyed", Question.FILES),
        ("keyed", Question.KEY),
        ("keyed", Question.TABLE),
    }


def test_a_folder_that_is_no_dbt_project_or_has_no_snapshots_is_refused(dbt: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no dbt_project\.yml"):
        draft_from_dbt(tmp_path, tmp_path / "lake")
    for file in dbt.rglob("snapshots/*"):
        file.unlink()
    with pytest.raises(UsageError, match="declares no snapshots"):
        draft_from_dbt(dbt, tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


def test_a_project_that_is_there_stays(dbt: Path, tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text("name: mine\n")
    with pytest.raises(UsageError, match="has a project already"):
        draft_from_dbt(dbt, tmp_path)
    assert (tmp_path / "project.yml").read_text() == "name: mine\n"


def test_init_writes_it_and_asks(dbt: Path, tmp_path: Path) -> None:
    here = InProcess(tmp_path)
    done = here.run("init", "lake", "--from-dbt", "dbt")
    assert done.code == 0, done.all
    assert "orders_snapshot: where do exports of shop.orders arrive?" in done.out
    assert here.run("init", "other", "--from-dbt", "dbt", "--from", "dbt").code == 2
    assert {each["name"] for each in here.json("init", "again", "--from-dbt", "dbt")["entities"]} == {
        "orders_snapshot",
        "customers_snapshot",
        "keyed",
    }
