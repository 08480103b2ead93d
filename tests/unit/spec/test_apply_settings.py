"""The section `apply` of a project. Rules of apply, "Decisions and grants"."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.spec.kinds import faults, load

from lakewright.spec.grants import Grant

PROJECT = "name: shop\nlake: {root_folder: lake}\n"


def test_it_gives_grants_and_the_budget_of_replays(tmp_path: Path) -> None:
    declared = "apply: {allow: [foreign, deletes], replay_budget: {slices: 500, bytes: 2GiB}}\n"
    found = load(tmp_path, {"project.yml": PROJECT + declared}).apply
    assert set(found.allow) == {Grant.FOREIGN, Grant.DELETES}
    assert (found.replay_budget.slices, found.replay_budget.bytes) == (500, 2 << 30)


def test_without_it_nothing_is_granted_and_replays_are_bounded(tmp_path: Path) -> None:
    found = load(tmp_path, {"project.yml": PROJECT}).apply
    assert (found.allow, found.replay_budget.slices, found.replay_budget.bytes) == ((), 100, 10 << 30)


@pytest.mark.parametrize(
    "declared",
    [
        "{allow: all}",
        "{allow: [foreign, everything]}",
        "{replay_budget: {slices: many}}",
        "{replay_budget: {slices: -1}}",
        "{replay_budget: {bytes: much}}",
        "{replay_budget: {rows: 5}}",
        "{permit: [foreign]}",
    ],
)
def test_what_it_cannot_mean_is_a_fault_of_the_project(tmp_path: Path, declared: str) -> None:
    (fault,) = faults(tmp_path, {"project.yml": f"{PROJECT}apply: {declared}\n"})
    assert fault.startswith("project.yml:3"), fault
