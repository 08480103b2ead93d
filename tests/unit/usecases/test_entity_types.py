"""The types of an entity's columns, and where they come from, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.silver import make_empty_silver, pa

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.usecases.declarations import entity_types

PROJECT = """
name: shop
modules: [model.yml]
lake: {root_folder: lake}
"""
MODEL = """
connections: {till: {}}
entities:
  prices:
    id: 1
    connection: till
    processtype: merge
    columns:
      - {name: id, fieldroles: [businesskey]}
      - {name: price, datatype: "decimal(8,2)"}
      - {name: day, newname: sold, datatype: date}
      - {name: note, omit: true}
"""


@pytest.fixture
def app(tmp_path: Path) -> App:
    (tmp_path / "project.yml").write_text(PROJECT)
    (tmp_path / "model.yml").write_text(MODEL)
    return App.open(tmp_path)


def types_of(app: App) -> list[tuple[str, str | None, str | None, str | None]]:
    columns = entity_types(app, "prices")["columns"]
    return [(each["column"], each["type"], each["origin"], each["declared"]) for each in columns]


def test_without_a_table_only_declared_types_are_known(app: App) -> None:
    assert types_of(app) == [
        ("id", None, None, None),
        ("price", "decimal(8,2)", "declared", None),
        ("sold", "date", "declared", None),
    ]


def test_a_table_has_declared_and_inferred_types_and_its_own(app: App) -> None:
    place = app.project.entities["prices"].places(app.lake.settings).silver.location
    columns = [("id", pa.int64()), ("price", pa.float64()), ("dlf_deleted", pa.bool_())]
    make_empty_silver(Path(str(place)), "merge", pa.schema(columns))
    assert types_of(app) == [
        ("id", "bigint", "inferred", None),
        ("price", "double", "declared", "decimal(8,2)"),
        ("dlf_deleted", "boolean", "system", None),
        ("sold", "date", "declared", None),
    ]


def test_an_entity_that_is_not_declared_is_named(app: App) -> None:
    with pytest.raises(UsageError):
        entity_types(app, "price")
