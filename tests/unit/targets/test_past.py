"""What is known of `history_from`, and of declarations that changed, without Spark."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from tests.commands import InProcess
from tests.projects import KINDS, make_workspace
from tests.unit.spec.kinds import faults

from lakewright.lake.delta_log import TableState
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.fields import Field, parse_type
from lakewright.spec.models.lake import LakeSettings
from lakewright.strategies import outdated
from lakewright.strategies.past_load import PastLoad
from lakewright.strategies.table_properties import (
    EXPRESSIONS_PROPERTY,
    HISTORY_PROPERTY,
    KEY_PROPERTY,
    KEY_VALUES_PROPERTY,
    declared_properties,
    history_text,
)

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

MODEL = """
connections:
  crm: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}
entities:
  prices:
    id: 1
    connection: crm
    processtype: historic
    columns:
    - {{name: id, fieldroles: [businesskey]}}
    - {{name: total, expression: "{total}"}}
    settings: {{{settings}}}
targets:
  prices: {{kind: entity, entity: prices}}
jobs: {{daily: {{targets: [prices]}}}}
"""


def entity(folder: Path, settings: str = "", total: str = "a + b") -> Entity:
    folder.mkdir(exist_ok=True)
    workspace = make_workspace(folder, MODEL.format(settings=settings, total=total))
    return workspace.project.entity("prices")


def entity_of(folder: Path, text: str, day: str) -> Entity:
    """Return the entity as a job with the parameter `day` sees it."""
    workspace = make_workspace(folder, text, day=day)
    return workspace.project.within(workspace.scope).entity("prices")


LAKE = LakeSettings(root_folder="/lake")


def outdated_rows(state: TableState, declared: Entity, lake: LakeSettings = LAKE) -> tuple[str, ...]:
    return tuple(each.text for each in outdated.outdated_rows(state, declared, lake))


def table(made_for: Entity, **properties: str) -> TableState:
    return TableState(
        exists=True,
        is_empty=False,
        columns=(),
        partition_columns=(),
        properties={**declared_properties(made_for, "UTC"), **properties},
    )


def test_a_changed_expression_is_named_with_the_command(tmp_path: Path) -> None:
    before, after = entity(tmp_path / "a"), entity(tmp_path / "b", total="a - b")
    assert outdated_rows(table(before), before) == ()
    assert outdated_rows(table(before), entity(tmp_path / "c", total="a  +\tb")) == ()
    assert outdated_rows(table(before), after) == (
        "the expression of total has changed since the table was built: rows that no slice changes keep "
        "their values; `lakewright rebuild prices` builds it again",
    )
    assert "a + b" not in declared_properties(before, "UTC")[EXPRESSIONS_PROPERTY]
    unknown = TableState(exists=True, is_empty=False, columns=(), partition_columns=(), properties={})
    assert outdated_rows(unknown, after) == ()
    plain = Entity.model_validate({**before.model_dump(), "columns": [before.columns[0].model_dump()]})
    assert "the expression of total has changed" in outdated_rows(table(before), plain)[0]


def test_keys_of_the_sources_values_are_named_if_a_cast_changes_these(tmp_path: Path) -> None:
    before = entity(tmp_path)
    key = {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]}
    declared = Entity.model_validate(
        {**before.model_dump(), "columns": [key, before.columns[1].model_dump()]}
    )
    made = declared_properties(declared, "UTC")

    def said(kind: str, **properties: str) -> tuple[str, ...]:
        properties[KEY_PROPERTY] = json.dumps({"id": kind})
        state = TableState(exists=True, is_empty=False, columns=(), properties={**made, **properties})
        return outdated_rows(state, declared)

    (told,) = said("string")
    assert told.startswith("primary keys are of 'id' before it is converted to bigint")
    assert said("number") == ()
    assert said("string", **{KEY_VALUES_PROPERTY: "cast"}) == ()


def test_a_changed_list_of_transformations_is_named_too(tmp_path: Path) -> None:
    before = entity(tmp_path)
    injected = before.model_validate({**before.model_dump(), "transformations": ["*", "1 as one"]})
    (said,) = outdated_rows(table(before), injected)
    assert said.startswith("the list of transformations has changed since the table was built")


@pytest.mark.parametrize(
    ("before", "now", "kind", "is_outdated"),
    [
        ("utc", "lake", "timestamp", True),
        ("utc", "refuse", "array<struct<at:timestamp>>", True),
        ("utc", "utc", "timestamp", False),
        ("refuse", "utc", "timestamp", False),
        ("utc", "lake", "timestamp_ntz", False),
        ("utc", "lake", None, False),
    ],
)
def test_rows_are_outdated_once_naive_times_are_read_otherwise(
    tmp_path: Path, before: str, now: str, kind: str | None, is_outdated: bool
) -> None:
    """Rules of reading, "Inference, where nothing is declared"; where they were refused, there are none."""
    lake = LakeSettings(root_folder="/lake", timezone="Europe/Berlin")
    one, other = (
        entity(tmp_path / f"{place}", f"naive_times: {word}") for place, word in enumerate((before, now))
    )
    system = [Field(name="dlf_ValidFrom", type=parse_type("timestamp"))]
    own = [] if kind is None else [Field(name="at", type=parse_type(kind))]
    properties = declared_properties(one, lake.timezone)
    made = TableState(exists=True, is_empty=False, columns=(*own, *system), properties=properties)
    assert bool(outdated_rows(made, other, lake)) is is_outdated


HISTORY = "history_from: {folder: exports, valid_from: day}"


def test_a_changed_history_is_named_with_the_command(tmp_path: Path) -> None:
    plain, with_past = entity(tmp_path / "a"), entity(tmp_path / "b", HISTORY)
    loaded = {HISTORY_PROPERTY: history_text(with_past, LAKE) or ""}
    other = entity(tmp_path / "c", HISTORY.replace("day", "date"))
    cases = [
        (plain, {}, None),
        (with_past, loaded, None),
        (with_past, {}, "the table was built without the versions of history_from"),
        (plain, loaded, "the table holds versions of a history_from that is no longer declared"),
        (other, loaded, "history_from has changed since the table was built"),
    ]
    for declared, properties, said in cases:
        found = outdated_rows(table(declared, **properties), declared)
        rebuild = "; `lakewright rebuild prices` builds it again"
        assert found == (() if said is None else (said + rebuild,))


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("/one/lake/exports", "/two/lake/exports", True),
        ("/one/lake/exports", "exports/", True),
        ("file:///one/lake/exports", "/two/lake/exports", True),
        ("${project.basedir}/exports", "${project.basedir}/exports", True),
        ("exports/$day", "exports/$day", True),
        ("/one/lake/exports", "/two/lake/others", False),
        ("/mnt/exports", "/mnt/others", False),
        ("${project.basedir}/exports", "${project.basedir}/others", False),
    ],
)
def test_a_history_is_the_same_after_the_project_or_the_lake_moved(
    tmp_path: Path, before: str, after: str, is_same: bool
) -> None:
    """What is compared is the place as declared, or relative to the lake's root folder."""
    found = []
    for folder, place, day in (("one", before, "2024-05-01"), ("two", after, "2024-05-02")):
        (tmp_path / folder).mkdir()
        settings = f"history_from: {{folder: '{place}', valid_from: day}}"
        text = MODEL.format(settings=settings, total="1")
        found.append(entity_of(tmp_path / folder, text, day))
    lakes = [LakeSettings(root_folder=f"/{name}/lake") for name in ("one", "two")]
    made = table(found[0], **{HISTORY_PROPERTY: history_text(found[0], lakes[0]) or ""})
    said = outdated_rows(made, found[1], lakes[1])
    assert said == () if is_same else "history_from has changed" in said[0]


def test_an_expression_with_a_parameter_or_the_date_is_the_same_each_day(tmp_path: Path) -> None:
    """An entry of the environment that it uses is compared as a text as well; what is declared counts."""

    def of(
        day: str, total: str, entry: str = "${LocalDate.parse('2024-05-01').plusDays(1)}", share: str = "0.1"
    ) -> Entity:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        environment = f'environment: ["now={entry}", "rate=$share", "share={share}"]\n'
        return entity_of(folder, environment + MODEL.format(settings="", total=total), day)

    used = "date '$day' - date '$now' + $rate"
    first = of("2024-05-01", used)
    assert "2024-05-01" in str(first.columns[1].expression)
    made = table(first)
    assert outdated_rows(made, of("2024-05-02", used, "2024-05-02")) != ()  # an edited entry
    for same in (of("2024-05-02", used), first):
        assert outdated_rows(made, same) == ()
    for changed in (of("2024-05-01", used + " + 1"), of("2024-05-01", used, share="0.2")):
        (said,) = outdated_rows(made, changed)
        assert said.startswith("the expression of total, or an entry of an environment that it uses (now, ra")


def seen(folder: Path, *, given: dict[str, str] | None = None, job: str = "", share: str = "0.1") -> Entity:
    """Return an entity as a job sees it: with `-D`, and entries of the job's environment."""
    folder = folder / str(len(list(folder.iterdir())))
    folder.mkdir()
    text = f'environment: ["rate=$share", "share={share}"]\n' + MODEL.format(settings="", total="$rate + $x")
    text = text.replace("targets: [prices]}", f"targets: [prices], environment: [{job}]}}")
    (folder / "project.yml").write_text("name: t\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (folder / "m.yml").write_text(text)
    given = {"x": "1", **(given or {})}
    project = load_project(folder, LoadOptions(kinds=KINDS, environ={}, definitions=given))
    return project.within(project.job_scope(project.job("daily"))).entity("prices")


def test_what_a_job_or_an_option_gives_an_expression_counts_as_declared(tmp_path: Path) -> None:
    """A job's entries are those of the files; `-D` counts where it overrides an entry that they declare."""
    plain = table(seen(tmp_path))
    assert outdated_rows(plain, seen(tmp_path)) == ()
    (of_job,) = outdated_rows(plain, seen(tmp_path, job="'share=0.2'"))
    assert of_job == (
        "the expression of total, or an entry of an environment that it uses (rate, share), has changed "
        "since the table was built: rows that no slice changes keep their values; `lakewright rebuild prices "
        "-D share=0.2` builds it again"
    )
    (given,) = outdated_rows(plain, seen(tmp_path, given={"share": "0.2"}))
    assert given == (
        "share, which the expression of total uses, has another value than when the table was built, by -D: "
        "rows that no slice changes keep their values; `lakewright rebuild prices` builds it again"
    )
    assert "`lakewright rebuild prices -D token=<token>`" in outdated_rows(
        plain, seen(tmp_path, job="'rate=$token', 'token=abc'")
    )[0].replace(" -D 'rate=$token'", "")


def test_a_table_that_was_built_with_an_option_wants_the_same_again(tmp_path: Path) -> None:
    """`rebuild -D` gives what the job's entry has; without it the table would get other values."""
    made = table(seen(tmp_path, given={"share": "0.2"}))
    for same in ({"given": {"share": "0.2"}}, {"job": "'share=0.2'"}):
        assert outdated_rows(made, seen(tmp_path, **same)) == ()
    (without,) = outdated_rows(made, seen(tmp_path))
    assert "share, which the expression of total uses, has another value" in without
    assert "was built, without -D: " in without
    (other,) = outdated_rows(made, seen(tmp_path, given={"share": "0.3"}))
    assert "share, which the expression of total uses, has another value" in other
    assert "0.2" not in made.properties[EXPRESSIONS_PROPERTY]
    edited = seen(tmp_path, given={"share": "0.2"}, share="0.9")
    assert outdated_rows(made, edited) == ()  # what -D overrides is not used


def test_a_name_that_no_environment_declares_is_a_parameter(tmp_path: Path) -> None:
    """Like the parameters of jobs, it may differ in each run: `process orders -D day=…`."""
    made = table(seen(tmp_path))
    assert outdated_rows(made, seen(tmp_path, given={"x": "2"})) == ()


REFUSED = [
    ("merge", {"folder": "x", "valid_from": "d"}, "history_from is for the strategy historic"),
    ("historic", {"valid_from": "d"}, "history_from needs a folder or a table"),
    ("historic", {"folder": "x", "table": "t", "valid_from": "d"}, "history_from needs a folder or a table"),
    ("historic", {"table": "t", "valid_from": "d", "format": "csv"}, "format is for a folder"),
    ("historic", {"folder": "x", "valid_from": "d", "sentinel": "9999-12-31"}, "sentinel needs valid_to"),
    ("historic", {"folder": "x", "valid_frm": "d"}, "did you mean 'valid_from'?"),
]


@pytest.mark.parametrize(("strategy", "declared", "why"), REFUSED)
def test_a_history_that_can_not_be_meant_is_refused(
    tmp_path: Path, strategy: str, declared: Any, why: str
) -> None:
    text = MODEL.format(settings=f"history_from: {json.dumps(declared)}", total="1")
    found = faults(tmp_path, text.replace("processtype: historic", f"processtype: {strategy}"))
    assert any(why in fault for fault in found), found


def lake(folder: Path, settings: str) -> InProcess:
    (folder / "model").mkdir(parents=True)
    (folder / "project.yml").write_text(
        "name: crm\nmodules: [model]\nlake: {root_folder: '${project.basedir}/lake'}\n"
    )
    (folder / "model" / "model.yml").write_text(MODEL.format(settings=settings, total="1"))
    return InProcess(folder)


def test_validate_names_columns_that_the_past_lacks(tmp_path: Path) -> None:
    """A missing column is an error with its line; a folder that can't be read here is a warning."""
    project = lake(tmp_path, HISTORY)
    gone = project.run("validate")
    assert (gone.code, "history_from: exports can't be read: there is no folder" in gone.all) == (0, True)

    exports = tmp_path / "lake" / "exports"
    exports.mkdir(parents=True)
    (exports / "2020.parquet").mkdir()
    pq.write_table(pa.table({"id": [1], "day": ["2020-01-01"]}), exports / "2020.parquet" / "part-0.parquet")
    right = project.run("validate")
    assert (right.code, "exports" in right.all) == (0, False)
    pq.write_table(pa.table({"nr": [1], "day": ["2021-01-01"]}), exports / "2021.parquet")
    lacking = project.run("validate")
    assert lacking.code == 2
    assert "history_from: 2021.parquet lacks 'id'; it has 'nr', 'day'" in lacking.all
    assert "model.yml:" in lacking.all

    csv = lake(tmp_path / "csv", HISTORY.replace("valid_from", "format: csv, columns: {id: nr}, valid_from"))
    (tmp_path / "csv" / "lake" / "exports").mkdir(parents=True)
    (tmp_path / "csv" / "lake" / "exports" / "1.csv").write_text('"nr",since\n1,2020-01-01\n')
    assert "history_from: 1.csv lacks 'day'; it has 'nr', 'since'" in csv.run("validate").all

    versions = lake(tmp_path / "table", "history_from: {table: old/prices, valid_from: day}")
    assert "there is no Delta table at" in versions.run("validate").all
    write_deltalake(str(tmp_path / "table" / "lake" / "old" / "prices"), pa.table({"id": [1]}))
    assert "history_from: old/prices lacks 'day'; it has 'id'" in versions.run("validate").all


def test_what_is_loaded_and_left_out_is_a_sentence() -> None:
    counts = {"rows": 9, "versions": 7, "records": 1, "late": 1}
    assert PastLoad("exports", counts, ("v",), ("a", "b")).text == (
        "before the first slice, exports gives 7 versions of 1 record; rows left out, which begin at its "
        "processing time or later: 1; columns left out, which the slice lacks: a, b; columns of the slice "
        "that have no values there: v"
    )
