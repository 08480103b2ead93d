"""Commands that look at what a project declares, on a real one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import NOW, Answered, FakeApp

from lakewright.cli.call import Call
from lakewright.cli.entry import answer
from lakewright.cli.output import Output

MODEL = """
relations:
  raw: {kind: file, format: csv, location: "${project.basedir}/data", description: What arrives}
  out: {kind: delta, location: "${project.basedir}/lake/out", options: {password: hush-hush}}
mappings:
  raw: {kind: relation, relation: raw}
  built: {kind: relation, relation: out}
  few:
    kind: sql
    sql: |
      SELECT *
      FROM raw
targets:
  out: {kind: relation, mapping: few, relation: out}
  size: {kind: measure, measures: {rows: {kind: sql, query: SELECT count(*) AS rows FROM built}}, after: out}
jobs:
  daily:
    description: Every day
    parameters: [{name: day, type: date, default: "2022-01-01"}]
    targets: [size, out]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project.yml").write_text("name: small\nmodules: [model.yml]\n")
    (tmp_path / "model.yml").write_text(MODEL)
    return tmp_path


def lakewright(project: Path, *arguments: str) -> Answered:
    out, err = io.StringIO(), io.StringIO()
    call = Call(Output(out, err), {}, io.StringIO(), clock=lambda: NOW)
    code = answer([*arguments, "--project", str(project)], call)
    return Answered(code, out.getvalue(), err.getvalue(), FakeApp())


def document(project: Path, *arguments: str) -> Any:
    answered = lakewright(project, *arguments, "-o", "json")
    assert answered.code == 0, answered.err
    return checked(json.loads(answered.out))


WRONG_MANIFESTS = [
    (
        "{kind: postgres}",
        "a manifest of kind postgres needs 'url' (Give url: postgresql://host/database; libpq",
    ),
    ("{kind: delta, location: }", "a manifest of kind delta needs 'location' (Give its table's folder"),
    ("{kind: sqlit}", "unknown kind 'sqlit' of manifest; known: delta, dynamodb, memory, postgres, sqlite"),
    ("{pth: x}", "a manifest of kind sqlite has no setting 'pth' (did you mean 'path'?)"),
    ("{leese: 5s}", "a manifest of kind sqlite has no setting 'leese' (did you mean 'lease'?)"),
    ("{lease: bogus}", "manifest: lease: 'bogus' is not a length of time"),
    ("{lease: 10ms}", "manifest: lease: 10ms is too short (Give a second or more.)"),
    ("{lease: 99999999999999h}", "manifest: lease: "),
    ("{takeover: never}", "manifest: takeover: 'never' is neither auto nor operator (Write one of the two.)"),
    ("{retention: long}", "manifest: retention: 'long' is not an age: "),
    ("{path: $nix, lease: $nix}", "unknown name 'nix'"),
]


@pytest.mark.parametrize(("section", "why"), WRONG_MANIFESTS)
def test_what_is_wrong_with_a_manifest_is_told_with_its_place(project: Path, section: str, why: str) -> None:
    (project / "project.yml").write_text(f"name: small\nmodules: [model.yml]\nmanifest:\n  {section}\n")
    answered = lakewright(project, "validate", "-o", "json")
    assert answered.code == 2
    errors = checked(json.loads(answered.out))["errors"]
    assert {error["location"] for error in errors} == {"project.yml:4"}
    assert f"{errors[0]['message']} ({errors[0]['remedy']})".startswith(why)


@pytest.mark.parametrize(
    "section",
    [
        "{kind: postgres, url: postgresql://, lease: 5m, takeover: Operator, retention: 90d}",
        "{kind: delta, location: \"$System.getenv('PLACE')\"}",
        "{kind: dynamodb}",
        "{lease: PT1M, retention: }",
    ],
)
def test_a_manifest_is_judged_without_its_back_end(project: Path, section: str) -> None:
    (project / "project.yml").write_text(f"name: small\nmodules: [model.yml]\nmanifest: {section}\n")
    assert document(project, "validate")["errors"] == []


def test_a_valid_project_is_said_to_be_so(project: Path) -> None:
    found = document(project, "validate")
    assert (found["errors"], found["counts"]["targets"]) == ([], 2)
    page = lakewright(project, "validate").out
    assert page == "small is valid: 2 relations, 3 mappings, 2 targets, 1 job\n"


def test_all_errors_come_at_once_with_file_and_line(project: Path) -> None:
    model = project / "model.yml"
    wrong = MODEL.replace("relation: raw}", "relation: rwa}").replace("mapping: few", "maping: few")
    model.write_text(wrong)
    errors = json.loads(lakewright(project, "validate", "-o", "json").out)["errors"]
    assert len(errors) == 2
    assert all(error["location"].startswith("model.yml:") for error in errors)


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("jobs", ["daily"]),
        ("targets", ["out", "size"]),
        ("relations", ["raw", "out"]),
        ("mappings", ["raw", "built", "few"]),
        ("entities", []),
    ],
)
def test_definitions_are_listed(project: Path, section: str, names: list[str]) -> None:
    assert [row["name"] for row in document(project, "ls", section)] == names
    assert lakewright(project, "ls", section).code == 0


def test_a_definition_is_shown_with_its_place_and_without_secrets(project: Path) -> None:
    found = document(project, "show", "relation", "out")
    assert found["location"] == "model.yml:4"
    assert found["definition"]["options"] == {"password": "***"}
    page = lakewright(project, "show", "mapping", "few").out.splitlines()
    assert page == ["mapping few model.yml:8", "  kind: sql", "  sql:", "    SELECT *", "    FROM raw"]


def test_an_unknown_definition_is_wrong_usage_that_names_a_near_one(project: Path) -> None:
    answered = lakewright(project, "show", "job", "dialy")
    assert answered.code == 2
    assert "did you mean 'daily'?" in answered.err


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("text", ["out (relation)"]),
        ("mermaid", ["flowchart LR", '  t0["out"]']),
        ("dot", ["digraph {", "  rankdir=LR; node [shape=box];", '  "out";', "}"]),
    ],
)
def test_a_graph_is_drawn_in_the_order_of_execution(project: Path, form: str, expected: list[str]) -> None:
    assert lakewright(project, "graph", "daily", "build", "--format", form).out.splitlines() == expected


def test_a_graph_names_what_each_target_depends_on(project: Path) -> None:
    targets = document(project, "graph", "daily", "verify")["targets"]
    assert [(target["name"], target["sources"]) for target in targets] == [("out", []), ("size", ["out"])]


def test_a_graph_shows_what_each_target_needs_and_gives(project: Path) -> None:
    (target,) = document(project, "graph", "daily", "build", "--resources")["targets"]
    (needed,), (given,) = target["requires"], target["provides"]
    assert (needed.startswith("file:"), given.startswith("file:")) == (True, True)
    text = lakewright(project, "graph", "daily", "build", "--resources").out.splitlines()
    assert text == ["out (relation)", f"  needs {needed}", f"  gives {given}"]
    mermaid = lakewright(project, "graph", "daily", "build", "--resources", "--format", "mermaid").out
    assert mermaid.count("-->") == 2
    dot = lakewright(project, "graph", "daily", "build", "--resources", "--format", "dot").out
    assert f'"{needed}" -> "out";' in dot
    assert f'"out" -> "{given}";' in dot


def test_a_plan_writes_nothing_at_all(project: Path) -> None:
    before = sorted(project.rglob("*"))
    assert document(project, "plan", "daily", "verify")["status"] == "WOULD_RUN"
    assert sorted(project.rglob("*")) == before


def test_without_a_project_it_says_where_it_looked(tmp_path: Path) -> None:
    answered = lakewright(tmp_path, "status")
    assert answered.code == 2
    assert str(tmp_path) in answered.err


SHARED = """
relations:
  prices: {kind: file, format: csv, location: "${project.basedir}/prices"}
targets:
  prices: {kind: relation, relation: prices}
  same: {kind: relation, relation: prices}
  own: {kind: relation, relation: {kind: file, format: csv, location: "${project.basedir}/own"}}
jobs:
  daily: {targets: [prices, own]}
  range: {targets: prices}
  nightly: {targets: [$which, same], environment: which=same}
  broken: {targets: $which}
"""


def test_what_a_clean_up_would_take_from_other_jobs_is_named_before_anybody_is_asked(project: Path) -> None:
    """`lifecycles-and-phases.md`, "Phases": DESTROY of a relation that other jobs list, too."""
    (project / "model.yml").write_text(SHARED)
    for name in ("prices", "own"):
        (project / name).mkdir()
        (project / name / "1.csv").write_text("1\n")

    (phase,) = document(project, "plan", "daily", "destroy")["instances"][0]["phases"]
    reasons = {target["name"]: target["reasons"] for target in phase["targets"]}
    assert reasons["prices"][-1] == "also of jobs nightly, range"
    assert "also" not in str(reasons["own"])

    asked = lakewright(project, "job", "daily", "destroy")
    assert asked.code == 2
    assert "also of jobs nightly, range" in asked.err
    assert (project / "prices" / "1.csv").is_file()
    assert "also" not in str(document(project, "plan", "daily", "verify"))


def test_a_graph_without_a_phase_shows_all_targets_of_the_job_as_declared(project: Path) -> None:
    """C4: neither a phase nor parameters are needed."""
    with_parameter = MODEL.replace(', default: "2022-01-01"', "")
    (project / "model.yml").write_text(with_parameter)
    assert lakewright(project, "graph", "daily").out.splitlines() == [
        "out (relation)",
        "size (measure) after out",
    ]
    found = document(project, "graph", "daily", "day=2022-01-01", "--resources")
    assert (found["phase"], [each["sources"] for each in found["targets"]]) == (None, [[], ["out"]])
    assert all(each["requires"] for each in found["targets"])
    assert lakewright(project, "graph", "daily", "day=yesterday").code == 2
    assert lakewright(project, "graph", "daily", "bild").code == 2


READING = """
name: shop
entities:
  sales: {from: in/*.csv, key: id}
tables:
  totals: {sql: SELECT count(*) AS sales FROM sales}
targets:
  of_sales: {kind: entity, entity: sales}
  some: {kind: verify, assertions: {any: {kind: sql, query: SELECT 1 FROM totals, expected: "1"}}}
jobs:
  daily: {targets: [some, totals, of_sales]}
"""


def test_a_graph_names_what_is_read_in_another_phase_and_the_entity(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text(READING)
    found = document(tmp_path, "graph", "daily")["targets"]
    assert {each["name"]: (each["entity"], each["sources"], each["reads"]) for each in found} == {
        "of_sales": ("sales", [], []),
        "totals": (None, ["of_sales"], ["of_sales"]),
        "some": (None, [], ["totals"]),
    }


def test_a_description_of_several_lines_is_one_line_of_a_list(project: Path) -> None:
    """B8: no escapes of tabs and line ends are shown."""
    (project / "model.yml").write_text(MODEL.replace("What arrives", '"What\\tarrives\\nevery day"'))
    assert "What arrives every day" in lakewright(project, "ls", "relations").out
