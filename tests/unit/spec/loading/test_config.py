"""Configuration entries of a project."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.spec.loading.settings import read_config


def test_configuration_is_sorted_out() -> None:
    found, faults, warnings = read_config(
        {
            "spark.x": "1",
            "flowman.default.target.outputMode": "append",
            "lakewright.default.target.outputMode": "overwrite",
            "flowman.execution.target.forceDirty": "true",
            "flowman.nix": "x",
            "lakewright.nix": "x",
            "hive.x": "y",
        },
        {},
    )
    assert found == {
        "spark.x": "1",
        "lakewright.default.target.outputMode": "overwrite",
        "lakewright.execution.target.forceDirty": "true",
    }
    assert [fault.message for fault in faults] == ["unknown configuration 'lakewright.nix'"]
    assert ["flowman.nix" in warnings[0].message, "hive.x" in warnings[1].message] == [True, True]


EXECUTOR = "flowman.execution.executor"
OWN = "lakewright.execution.executor.parallelism"


@pytest.mark.parametrize(
    ("lines", "jobs", "warning"),
    [
        ([f"{EXECUTOR}.parallelism=8"], None, "without the class ParallelExecutor"),
        ([f"{EXECUTOR}.class=com.dimajix.flowman.execution.SimpleExecutor"], None, None),
        ([f"{EXECUTOR}.class=com.dimajix.flowman.execution.ParallelExecutor"], "4", None),
        ([f"{EXECUTOR}.class=x.ParallelExecutor", f"{EXECUTOR}.parallelism=8"], "8", None),
        ([f"{EXECUTOR}.class=x.ParallelExecutor", f"{OWN}=2"], "2", None),
        ([f"{EXECUTOR}.class=x.OtherExecutor"], None, "there is no executor 'x.OtherExecutor'"),
    ],
)
def test_flowmans_parallelism_counts_with_its_parallel_executor_only(
    tmp_path: Path, lines: list[str], jobs: str | None, warning: str | None
) -> None:
    """E2: `SimpleExecutor`, Flowman's default, runs one target at a time whatever the parallelism says."""
    project = make_project(tmp_path, f"config: {lines}")
    assert project.config.get(OWN) == jobs
    assert [fault.message for fault in project.warnings if warning is None or warning in fault.message] == [
        fault.message for fault in project.warnings
    ]
    assert bool(project.warnings) == (warning is not None)
