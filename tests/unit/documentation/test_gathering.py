"""What is gathered without Spark: neighbours, declared columns, entities, endings and notes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.contexts import make_context
from tests.projects import make_project, make_workspace

from lakewright.checks.check import CheckStatus
from lakewright.documentation.document import Document, Item, Ref
from lakewright.documentation.gathering.gather import DocumentRequest, gather_document
from lakewright.documentation.target import documentation_settings
from lakewright.errors import SpecError
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.lease import Holder
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.targets.target import Target
from lakewright.testing import MemoryStore

SHOP = """
environment: [password=hunter2]
connections:
  web: {settings: {bronze_path: "${destination}", silver_path: "${destination}"}}
entities:
  people:
    id: 1
    connection: web
    processtype: merge
    description: Whom we sell to
    columns:
      - {name: key, newname: id, datatype: long, fieldroles: [businesskey]}
      - {name: full, expression: "first || last"}
    watermark: {column_name: changed, expression: "${last_value}"}
relations:
  slices:
    kind: file
    location: lake/bronze/people/1
    schema: {fields: [{name: key, type: long, description: Number of a person}]}
  people: {kind: entity, entity: people}
  raw:
    kind: file
    location: raw
    schema: {fields: [{name: id, type: integer}, {name: price, type: double, nullable: false}]}
    partitions: [{name: year, type: integer}]
  prices:
    kind: delta
    location: gold/prices
    schema: {fields: [{name: id, type: integer}]}
    description: the password is hunter2
    documentation:
      columns: {name: ID, description: Number, checks: [notNull]}
      checks: {kind: primaryKey, columns: [id]}
  later: {kind: file, location: "x/$month"}
mappings:
  raw: {kind: relation, relation: raw}
  prices: {kind: sql, sql: SELECT id FROM raw}
targets:
  land: {kind: relation, mapping: raw, relation: slices}
  people: {kind: entity, entity: people}
  prices: {kind: relation, mapping: prices, relation: prices, buildPolicy: ALWAYS}
  later: {kind: relation, mapping: prices, relation: later}
  test: {kind: verify, assertions: {a: {kind: uniqueKey, mapping: prices, key: id}}}
  pages: {kind: document, generators: {location: out, template: json}, collectors: [{kind: relations}]}
"""
OFFLINE = frozenset({"relations", "mappings", "targets", "entities"})


@pytest.fixture
def told(tmp_path: Path) -> Document:
    return gather_document(make_context(make_workspace(tmp_path, SHOP)), DocumentRequest(OFFLINE))


def item(document: Document, category: str, name: str) -> Item:
    (found,) = [each for each in document.items if each.ref == Ref(category, name)]
    return found


def test_items_have_upstream_and_downstream_neighbours(told: Document) -> None:
    edges = {(str(a.name), str(b.name)) for a, b in told.edges() if a.category != b.category}
    assert edges == {
        ("raw", "raw"),
        ("raw", "land"),
        ("land", "slices"),
        ("slices", "people"),
        ("people", "people"),
        ("prices", "prices"),
        ("prices", "later"),
        ("later", "later"),
        ("prices", "test"),
    }
    assert item(told, "entity", "people").reads == (Ref("target", "people"),)
    assert item(told, "relation", "people").reads == (Ref("entity", "people"),)
    assert item(told, "target", "people").reads == (Ref("relation", "slices"),)


def test_columns_are_shown_as_declared(told: Document) -> None:
    raw = item(told, "relation", "raw")
    assert [(c.name, c.type, c.nullable, c.marks) for c in raw.columns] == [
        ("id", "int", True, ()),
        ("price", "double", False, ()),
        ("year", "int", False, ("partition",)),
    ]
    prices = item(told, "relation", "prices")
    assert [(c.name, c.description) for c in prices.columns] == [("id", "Number")]
    assert [check.status for check in prices.all_checks()] == [CheckStatus.NOT_RUN] * 2


def test_a_documented_column_that_does_not_exist_is_shown_and_marked(tmp_path: Path) -> None:
    project = SHOP.replace(
        "columns: {name: ID, description: Number, checks: [notNull]}",
        "columns: [{name: ID, description: Number}, {name: idd, description: Gone, checks: [notNull]}]",
    )
    context = make_context(make_workspace(tmp_path, project))
    request = DocumentRequest(collected=frozenset({"relations"}))
    found = item(gather_document(context, request), "relation", "prices")
    first, second = found.columns
    assert (first.name, first.description, first.marks) == ("id", "Number", ())
    assert (second.name, second.description, second.marks) == ("idd", "Gone", ("does not exist",))
    assert [check.label for check in second.checks] == ["idd is not null"]


def test_an_entity_shows_strategy_keys_watermarks_and_slices(told: Document) -> None:
    people = item(told, "entity", "people")
    facts = dict(people.facts)
    assert (people.kind, people.description) == ("merge", "Whom we sell to")
    assert (facts["business key"], facts["watermark changed"], facts["slices"]) == (
        "id",
        "none yet",
        "none seen yet",
    )
    key, full = people.columns
    assert key.marks == ("business key", "from key")
    assert [source.column for source in key.sources] == ["key"]
    assert (full.made, full.marks) == ("first || last", ("calculated",))
    assert "first slice" in str(people.note)


def test_an_item_with_unknown_names_has_a_note_and_its_neighbours(told: Document) -> None:
    later = item(told, "target", "later")
    assert "unknown name 'month'" in str(later.note)
    assert (later.reads, later.read_by) == ((Ref("mapping", "prices"),), (Ref("relation", "later"),))


def test_targets_show_how_they_ended_in_the_last_run(tmp_path: Path) -> None:
    store = MemoryStore()
    journal = Journal(store)
    start = datetime(2022, 1, 1, tzinfo=UTC)
    run = Run("r", "tests", "daily", "BUILD", {"day": "1"}, start, Holder("here", 1, "then", "r"))
    journal.start_run(run)
    ended = {"name": "prices", "phase": "BUILD", "status": "FAILED", "reasons": ["dirty"], "seconds": 2}
    journal.record_targets(run, {1: {**ended, "instance": {"day": "1"}, "error": {"message": "full"}}})
    context = make_context(make_workspace(tmp_path, SHOP), store=store)

    told = gather_document(context, DocumentRequest(OFFLINE, "daily", {"day": "1"}, run))

    (ending,) = item(told, "target", "prices").endings
    assert (ending.status, ending.reasons, ending.error) == ("FAILED", ("dirty",), "full")
    assert item(told, "target", "prices").is_bad
    assert told.last_run is not None
    assert told.last_run.job == "daily"


def test_the_target_writes_what_its_generators_and_collectors_say(tmp_path: Path) -> None:
    context = make_context(make_workspace(tmp_path, SHOP))
    outcome = Target.named(context.workspace, "pages").execute(context, Phase.VERIFY)
    assert (outcome.status, outcome.metrics) == (Status.SUCCESS, {"checks": 0, "checks_failed": 0})
    document = json.loads((tmp_path / "out" / "documentation.json").read_text())
    assert {each["ref"]["category"] for each in document["items"]} == {"relation"}


def test_settings_can_use_names_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "documentation.yml").write_text(
        "collectors: {kind: tests}\n"
        "generators:\n- {location: '${project.basedir}/x', template: text, excludeMappings: 'tmp_.*'}\n"
    )
    settings = documentation_settings(make_workspace(tmp_path, SHOP))
    (generator,) = settings.generators
    assert (settings.collected, generator.location) == (frozenset({"checks"}), f"{tmp_path}/x")
    assert generator.template.value == "markdown"
    assert not generator.shows("mapping", "tmp_x", "tests")
    assert generator.shows("mapping", "x_tmp_", "tests")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("generators: {template: latex}", "documentation.yml:1"),
        ("collectors:\n- {kind: everything}", "documentation.yml:2"),
        ("generator: []", "unknown key 'generator'"),
        ("generators: {excludeTargets: '('}", "not a regular expression"),
    ],
)
def test_invalid_settings_are_found_when_the_project_is_loaded(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "documentation.yml").write_text(text)
    with pytest.raises(SpecError) as caught:
        make_project(tmp_path, SHOP)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("checks: {kind: noSuch}", "unknown kind 'noSuch' of check"),
        ("columns: {name: x, checks: {kind: length}}", "a `minimum`, a `maximum` or a `length`"),
        ("checks: {kind: foreignKey, mapping: nowhere, columns: [x]}", "there is no mapping 'nowhere'"),
        ("checks: {kind: foreignKey, columns: [x]}", "a `relation` or a `mapping`"),
        ("text: x", "unknown key 'text'"),
    ],
)
def test_invalid_blocks_are_found_when_the_project_is_loaded(
    tmp_path: Path, block: str, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        make_project(
            tmp_path, f"mappings: {{m: {{kind: values, columns: {{x: string}}, documentation: {{{block}}}}}}}"
        )
    assert message in str(caught.value)
