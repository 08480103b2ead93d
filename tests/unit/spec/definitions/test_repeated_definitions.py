"""Entries of kind `template`: another entry of the category, with other names in force."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project, make_workspace

from lakewright.errors import SpecError
from lakewright.relations.file import FileRelation
from lakewright.targets.relation import RelationTarget

PROJECT = """
environment: [layer=raw]
relations:
  landed: {kind: file, location: "$layer/${table}", options: {sep: "$separator"}}
  fees: {kind: template, relation: landed, environment: [table=fee, separator=;], description: Fees}
  taxes: {kind: template, relation: fees, environment: {table: tax, layer: cooked}}
mappings:
  rows: {kind: relation, relation: "$table"}
  fees: {kind: template, mapping: rows, environment: [table=fees]}
targets:
  write: {kind: relation, mapping: "$what", relation: "$what", mode: APPEND}
  fees: {kind: template, target: write, environment: [what=fees], after: other}
  other: {kind: empty}
"""


def test_an_entry_stands_for_another_with_names_of_its_own(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PROJECT)
    found = [workspace.relation(name) for name in ("fees", "taxes")]
    fees, taxes = [each for each in found if isinstance(each, FileRelation)]
    assert (fees.name, fees.location, fees.options["sep"], fees.description) == (
        "fees",
        "raw/fee",
        ";",
        "Fees",
    )
    assert (taxes.location, taxes.options["sep"]) == ("cooked/tax", ";")
    assert workspace.required("fees") == fees.resources(workspace)
    target = workspace.target("fees")
    assert isinstance(target, RelationTarget)
    assert (target.mapping, target.relation, target.after) == ("fees", "fees", ("other",))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ("relations: {a: {kind: template}}", "'relation' is missing"),
        ("relations: {a: {kind: template, relation: b}}", "there is no relation 'b'"),
        (
            "mappings: {a: {kind: template, mapping: b}, b: {kind: template, mapping: a}}",
            "repeat each other",
        ),
        ("targets: {a: {kind: template, target: b, environment: [x]}, b: {kind: empty}}", "is not key=value"),
        ("targets: {a: {kind: template, target: b, mode: x}, b: {kind: empty}}", "unknown key 'mode'"),
    ],
)
def test_what_is_wrong_with_it_is_found_when_the_project_is_loaded(
    tmp_path: Path, sections: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        make_project(tmp_path, sections)
