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
from lakewright.lake.delta_log import ABSENT, TableState
from lakewright.slices import processing, rehearsal
from lakewright.slices.context import ProcessingOptions
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.fields import Field, parse_type
from lakewright.strategies.outdated import narrowed_columns
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
    ("kept", "declared", "lost"),
    [
        # What the declared type lacks.
        ("decimal(8,2)", "integer", "int"),
        ("decimal(8,2)", "decimal(6,2)", "decimal(6,2)"),
        ("decimal(8,3)", "decimal(8,2)", "decimal(8,2)"),
        ("double", "integer", "int"),
        ("double", "decimal(8,2)", "decimal(8,2)"),
        ("double", "float", "float"),
        ("bigint", "integer", "int"),
        ("bigint", "decimal(10,2)", "decimal(10,2)"),
        ("bigint", "double", "double"),
        ("timestamp", "date", "date"),
        ("timestamp_ntz", "date", "date"),
        ("string", "long", "bigint"),
        ("string", "timestamp", "timestamp"),
        ("string", "array<int>", "array<int>"),
        ("array<double>", "array<int>", "array<int>"),
        ("struct<a: double>", "struct<a: int>", "struct<`a`: int>"),
        # What the table lacks: a column of whole numbers was declared as double, and fractions were put aside
        # without a word.
        ("int", "double", "int"),
        ("int", "decimal(12,2)", "int"),
        ("bigint", "string", "bigint"),
        ("decimal(8,2)", "double", "decimal(8,2)"),
        ("double", "string", "double"),
        ("date", "timestamp", "date"),
    ],
)
def test_another_type_than_the_tables_is_told_with_what_does_not_fit_and_what_to_type(
    tmp_path: Path, kept: str, declared: str, lost: str
) -> None:
    (told,) = narrowed_columns(table(kept), orders(tmp_path, declared))
    new, own = parse_type(declared).ddl, parse_type(kept).ddl
    assert told == (
        f"column 'total' is declared as {new}, but the table has {own} and keeps it: a value of a new slice "
        f'that does not fit {lost} fails its slice; declare `datatype: "{own}"`, or build the table again '
        "with `lakewright rebuild orders`"
    )


@pytest.mark.parametrize(
    ("kept", "declared"),
    [
        ("int", "integer"),
        ("int", "long"),
        ("float", "double"),
        ("decimal(8,2)", "decimal(10,3)"),
        ("array<int>", "array<long>"),
        ("struct<a: int>", "struct<a: long, b: date>"),
    ],
)
def test_a_type_that_the_table_takes_over_is_not_told(tmp_path: Path, kept: str, declared: str) -> None:
    assert list(narrowed_columns(table(kept), orders(tmp_path, declared))) == []


def test_a_text_of_bounded_length_is_not_told_since_tables_have_plain_ones(tmp_path: Path) -> None:
    """Building the table again would not change its type."""
    assert list(narrowed_columns(table("string"), orders(tmp_path, "varchar(9)"))) == []


def test_a_column_that_the_table_lacks_is_not_told(tmp_path: Path) -> None:
    assert list(narrowed_columns(ABSENT, orders(tmp_path, "integer"))) == []


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
    assert any(
        str(each).startswith("column 'total' is declared as int, but the table") for each in found.notes
    )
    assert len(looks) == 1


def test_a_rehearsal_warns_of_narrower_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It warned of nothing, and its slice failed, or lost digits, without a word of the reason."""
    workspace = make_workspace(tmp_path, PROJECT.format(declared="integer", settings=""))
    (tmp_path / "lake/bronze/orders").mkdir(parents=True)
    (tmp_path / "lake/bronze/orders/s1.parquet").write_bytes(b"PAR1")
    entity = workspace.entity("orders")
    for name in ("begin_beside", "drop_table", "remove_uncommitted"):
        monkeypatch.setattr(rehearsal, name, lambda *_, **__: None)
    monkeypatch.setattr(rehearsal, "observe_table", lambda *_: table("bigint"))
    monkeypatch.setattr(rehearsal._Attempt, "rehearse", lambda attempt, _: attempt.warnings)
    context = processing_context(make_context(workspace), entity, ProcessingOptions())
    with rehearsal.rehearsed(context, entity, "s1.parquet") as (warnings, _):
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
        monkeypatch.setattr(processing, name, lambda *_, **__: SimpleNamespace(waiting=(), late=frozenset()))
    monkeypatch.setattr(processing, "choose_slices", lambda *_: ["s1"])
    times = SimpleNamespace(check_readable=lambda: None)
    monkeypatch.setattr(processing, "check_table_not_lost", lambda *_: table("bigint"))

    class Stopped(Exception):
        pass

    def begin(*_: object) -> None:
        assert [text.partition(" is declared")[0] for text in said] == ["orders: column 'total'"]
        raise Stopped

    monkeypatch.setattr(processing, "_process", begin)
    context: Any = SimpleNamespace(lake=None, times=lambda _: times, warn=said.append)
    with pytest.raises(Stopped):
        processing.process_pending(context, entity)
