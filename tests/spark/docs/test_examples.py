"""Examples of the reference do what they are examples of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same
from tests.spark.relations.relations import counts_by_name

from lakewright.plan.status import Status
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
ELSEWHERE = {"provided", "python", "relation"}
"""Mappings that read what the example doesn't have."""
MAPPINGS = sorted(file for file in (EXAMPLES / "mapping").glob("*.yml") if file.stem not in ELSEWHERE)
CHECKS = [
    *sorted((EXAMPLES / "assertion").glob("*.yml")),
    *sorted((EXAMPLES / "measure").glob("*.yml")),
    *(EXAMPLES / "target" / f"{kind}.yml" for kind in ("compare", "measure", "validate", "verify")),
]


@pytest.mark.parametrize("file", MAPPINGS, ids=lambda file: file.stem)
def test_mappings_give_rows(file: Path, tmp_path: Path, spark: SparkSession) -> None:
    workspace = make_workspace(tmp_path, file.read_text(), sessions=same(spark))
    kinds = {name: definition.kind for name, definition in workspace.project.mappings.items()}
    read = [name for name, kind in kinds.items() if kind != "groupedAggregate"]  # it has no main output
    counts = counts_by_name({name: workspace.frame(name) for name in read})
    assert {name for name, count in counts.items() if count == 0} <= {"no_prices"}


@pytest.mark.parametrize("file", CHECKS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_checks_hold(file: Path, tmp_path: Path, spark: SparkSession) -> None:
    workspace = make_workspace(tmp_path, file.read_text(), sessions=same(spark))
    for name in workspace.project.targets:
        target = Target.named(workspace, name)
        (phase,) = target.phases()
        outcome = target.execute(make_context(workspace), phase)
        assert outcome.status is Status.SUCCESS, outcome.reasons
        assert outcome.metrics or target.kind == "compare"
