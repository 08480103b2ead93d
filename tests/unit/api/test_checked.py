"""Arguments of other types are refused by name, before anything happens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from lakewright import Entity, Processing, Project
from lakewright.errors import SparkUnavailable, UsageError

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: csv}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
jobs:
  daily: {targets: []}
"""

REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "a number as the name of a job": (lambda p: p.run(5), "Project.run: job=5 is of type int, not str"),
    "a date as an argument": (
        lambda p: p.run("daily", "build", date(2024, 5, 1)),
        "Project.run: arguments=datetime.date(2024, 5, 1) is of type date, not str",
    ),
    "a listener that can't be called": (
        lambda p: p.run("daily", on_event=5),
        "Project.run: on_event=5 is of type int, not Callable or None",
    ),
    "a text as a switch": (
        lambda p: p.plan("daily", force="no"),
        "Project.plan: force='no' is of type str, not bool",
    ),
    "a list of parameters": (
        lambda p: p.plan("daily", parameters=["day"]),
        "Project.plan: parameters=['day'] is of type list, not Mapping or None",
    ),
    "no name of a relation": (
        lambda p: p.relation(None),
        "Project.relation: name=None is of type NoneType, not str",
    ),
    "a switch as a number": (
        lambda p: p.history(limit=True),
        "Project.history: limit=True is of type bool, not int or None",
    ),
    "a number below one": (lambda p: p.history(limit=0), "limit=0 is not a whole number from 1 on"),
    "no slice": (
        lambda p: p.entity("orders").undo(None),
        "Entity.undo: slice_name=None is of type NoneType, not str",
    ),
    "a number as a time": (
        lambda p: p.entity("orders").process(processing_time=5),
        "Entity.process: processing_time=5 is of type int, not str, date, datetime or None",
    ),
    "rows below zero": (
        lambda p: p.entity("orders").changes("d1", rows=-1),
        "rows=-1 is not a whole number from 1 on",
    ),
    "an entity by name alone": (
        lambda _: Processing("orders", "d1"),  # type: ignore[arg-type]
        "Processing: entity='orders' is of type str, not Entity",
    ),
}


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(MODEL)
    return Project.load(tmp_path)


@pytest.mark.parametrize("case", REFUSED)
def test_an_argument_of_another_type_is_refused(shop: Project, case: str) -> None:
    call, said = REFUSED[case]
    with pytest.raises(UsageError) as refused:
        call(shop)
    assert refused.value.message == said


def test_numbers_and_switches_of_numpy_are_those_of_python(shop: Project) -> None:
    assert list(shop.history(limit=np.int64(5))) == []  # type: ignore[arg-type]
    plan = shop.plan(np.str_("daily"), "build", force=np.True_)  # type: ignore[arg-type]
    assert plan.job == "daily"


def test_a_wrong_number_of_arguments_is_told_by_python(shop: Project) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'slice_name'"):
        cast("Any", shop.entity("orders")).undo()


def test_a_strategy_is_one_of_three(shop: Project) -> None:
    with pytest.raises(UsageError, match="'mrege' is not a strategy") as refused:
        shop.entity("orders").process(strategy="mrege")
    assert refused.value.remedy == "did you mean 'merge'?"


def test_what_is_no_session_is_not_called_one_of_spark_connect(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match="the given session is of type int, not SparkSession"):
        Project.load(tmp_path, spark=cast("Any", 5))


def test_a_closed_project_runs_and_reads_nothing_more(shop: Project) -> None:
    orders: Entity = shop.entity("orders")
    with shop:
        assert shop.status().plan.steps == ()
    for call in (shop.status, shop.history, lambda: shop.sql("SELECT 1"), orders.process, orders.read):
        with pytest.raises(UsageError, match="the project shop is closed"):
            call()
    shop.close()
    assert (shop.name, repr(shop), orders.name) == ("shop", f"<Project shop in {shop.folder}>", "orders")
