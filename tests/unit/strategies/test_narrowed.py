"""Declared types that are narrower than the table's are told before slices are processed, without Spark."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import write_deltalake
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.lake import delta_log, observation
from lakewright.lake.table_state import ABSENT, TableState
from lakewright.slices import process, rehearse
from lakewright.slices.context import ProcessingOptions
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.fields import Field, parse_type
from lakewright.strategies.narrowed import narrowed_columns
from lakewright.targets.entity.work import processing_context
from lakewright.targets.target import Target

pa: Any = import_module("pyarrow")

PROJECT = """
connections:
  shop: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    columns:
    - {{name: id, fieldroles: [businesskey]}}
    - {{name: amount, newname: total, datatype: "{declared}"}}
    settings: {{{settings}}}
targets: {{orders: {{kind: entity, entity: orders}}}}
"""


def orders(folder: Path, declared: str, settings: str = "") -> Entity:
    return make_workspace(folder, PROJECT.format(declared=declared, settings=settings)).entity("orders")


def table(kept: str) -> TableState:
    return TableState(exists=True, columns=(Field(name="total", type=parse_type(kept)),))


@pytest.mark.parametrize(
    ("kept", "declared", "effect"),
    [
        ("decimal(8,2)", "integer", "a value of a new slice that does not fit int fails its slice"),
        ("decimal(8,2)", "decimal(6,2)", "that does not fit decimal(6,2) fails its slice"),
        ("decimal(8,3)", "decimal(8,2)", "fails its slice, and others are rounded to it"),
        ("double", "integer", "that does not fit int fails its slice"),
        ("double", "decimal(8,2)", "fails its slice, and others are rounded to it"),
        ("double", "float", "fails its slice, and others are rounded to it"),
        ("bigint", "integer", "that does not fit int fails its slice"),
        ("bigint", "decimal(10,2)", "that does not fit decimal(10,2) fails its slice"),
        ("timestamp", "date", "values of new slices lose their time of day"),
        ("timestamp_ntz", "date", "values of new slices lose their time of day"),
        ("string", "long", "fails its slice, and others are stored as bigint writes them"),
        ("string", "timestamp", "fails its slice, and others are stored as timestamp writes them"),
    ],
)
def test_a_narrower_type_is_told_with_its_effect_and_what_to_type(
    tmp_path: Path, kept: str, declared: str, effect: str
) -> None:
    (told,) = narrowed_columns(table(kept), orders(tmp_path, declared))
    new = parse_type(declared).ddl
    assert told.startswith(f"column 'total' is declared as {new}, but the table has {kept} and keeps it: ")
    assert told.endswith(
        f'{effect}; declare `datatype: "{kept}"`, or build the table again with `lakewright rebuild orders`'
    )


@pytest.mark.parametrize(
    ("kept", "declared"),
    [
        ("int", "integer"),
        ("int", "long"),
        ("float", "double"),
        ("decimal(8,2)", "decimal(10,3)"),
        ("date", "timestamp"),
        ("string", "varchar(9)"),
        ("string", "binary"),
        ("array<int>", "integer"),
    ],
)
def test_a_type_that_holds_what_the_table_has_is_not_told(tmp_path: Path, kept: str, declared: str) -> None:
    assert narrowed_columns(table(kept), orders(tmp_path, declared)) == ()


@pytest.mark.parametrize(
    ("kept", "declared"),
    [
        ("int", "decimal(12,2)"),
        ("bigint", "double"),
        ("bigint", "string"),
        ("decimal(8,2)", "double"),
        ("double", "string"),
    ],
)
def test_a_type_of_a_wider_kind_that_the_table_does_not_take_over_is_told(
    tmp_path: Path, kept: str, declared: str
) -> None:
    """A column of whole numbers was declared as double, and fractions were put aside without a word."""
    (told,) = narrowed_columns(table(kept), orders(tmp_path, declared))
    assert told == (
        f"column 'total' is declared as {parse_type(declared).ddl}, but the table has {kept} and keeps it: a "
        f'value of a new slice that does not fit {kept} fails its slice; declare `datatype: "{kept}"`, or '
        "build the table again with `lakewright rebuild orders`"
    )


def test_a_column_that_the_table_lacks_is_not_told(tmp_path: Path) -> None:
    assert narrowed_columns(ABSENT, orders(tmp_path, "integer")) == ()


@pytest.mark.parametrize(
    ("settings", "effect"),
    [
        ("on_bad_rows: quarantine", "that does not fit int is put aside as a bad row;"),
        ("schema_drift: fail", "each slice fails, because of `schema_drift: fail`;"),
    ],
)
def test_the_effect_of_a_narrower_type_follows_from_the_settings(
    tmp_path: Path, settings: str, effect: str
) -> None:
    (told,) = narrowed_columns(table("bigint"), orders(tmp_path, "integer", settings))
    assert effect in told


def test_a_plan_tells_narrower_types_from_the_one_look_at_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Spark may be started here."""
    context = make_context(make_workspace(tmp_path, PROJECT.format(declared="integer", settings="")))
    write_deltalake(str(tmp_path / "lake/silver/orders"), pa.table({"id": [1], "total": [1.5]}))
    looks: list[object] = []

    def look(found: Any) -> TableState:
        looks.append(found)
        return delta_log.state_of(found)

    monkeypatch.setattr(observation, "state_of", look)
    with context.workspace.lake.observing():
        found = Target.named(context.workspace, "orders").observe(context)
    assert any(note.startswith("column 'total' is declared as int, but the table") for note in found.notes)
    assert len(looks) == 1


def test_a_rehearsal_warns_of_narrower_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It warned of nothing, and its slice failed, or lost digits, without a word of the reason."""
    workspace = make_workspace(tmp_path, PROJECT.format(declared="integer", settings=""))
    (tmp_path / "lake/bronze/orders").mkdir(parents=True)
    (tmp_path / "lake/bronze/orders/s1.parquet").write_bytes(b"PAR1")
    entity = workspace.entity("orders")
    for name in ("begin_beside", "_remove"):
        monkeypatch.setattr(rehearse, name, lambda *_, **__: None)
    monkeypatch.setattr(rehearse, "observe_table", lambda *_: table("bigint"))
    monkeypatch.setattr(rehearse._Attempt, "rehearse", lambda attempt, _: attempt.warnings)
    context = processing_context(make_context(workspace), entity, ProcessingOptions())
    with rehearse.rehearsed(context, entity, "s1.parquet") as warnings:
        (told,) = cast("list[str]", warnings)
    assert told.startswith("column 'total' is declared as int, but the table has bigint and keeps it: ")


def test_a_run_warns_of_narrower_types_before_it_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entity, said = orders(tmp_path, "integer"), list[str]()
    for name in (
        "_settle",
        "check_processing_times",
        "prepare_cluster",
        "SliceProcessor",
        "_wait_for_pending",
        "find_other_writers",
    ):
        monkeypatch.setattr(process, name, lambda *_, **__: SimpleNamespace(waiting=(), late=frozenset()))
    monkeypatch.setattr(process, "choose_slices", lambda *_: ["s1"])
    times = SimpleNamespace(check_readable=lambda: None)
    monkeypatch.setattr(process, "ProcessingTimes", SimpleNamespace(of=lambda *_: times))
    monkeypatch.setattr(process, "check_table_not_lost", lambda *_: table("bigint"))

    class Stopped(Exception):
        pass

    def begin(*_: object) -> None:
        assert [text.partition(" is declared")[0] for text in said] == ["orders: column 'total'"]
        raise Stopped

    monkeypatch.setattr(process, "_process", begin)
    lake = SimpleNamespace(settings=SimpleNamespace(zone=None))
    context: Any = SimpleNamespace(lake=lake, options=None, warn=said.append)
    with pytest.raises(Stopped):
        process.process_pending(context, entity)
