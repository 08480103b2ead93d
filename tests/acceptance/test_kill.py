"""Killed in the middle, then run again: silver as if never killed.

`processing-manifest.md`, "State" (Processing acquires a lock).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.lake import SmallLake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VOLATILE = {"dlf_lastSeen", "dlf_ValidFrom", "dlf_ValidTo"}
POINTS = ["after_lock", "after_read", "before_commit", "after_commit", "before_processed"]


def row(key: int, value: int) -> dict[str, Any]:
    return {"id": key, "name": f"n{value}"}


def fill(lake: SmallLake) -> None:
    for entity in ("customers", "prices"):
        lake.slice(entity, "1", [row(key, 0) for key in range(20)])
        lake.slice(entity, "2", [row(key, key % 3) for key in range(5, 25)])
        lake.slice(entity, "3", [row(key, 1) for key in range(30)])


def content(lake: SmallLake, entity: str) -> list[tuple[tuple[str, Any], ...]]:
    return sorted(
        tuple((name, value) for name, value in sorted(found.items()) if name not in VOLATILE)
        for found in lake.silver(entity)
    )


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    lake = SmallLake.make(tmp_path_factory.mktemp("unharmed") / "lake")
    fill(lake)
    done = lake.run("job", "daily", "build", "-t", "customers|prices")
    assert done.code == 0, done.all
    return lake


@pytest.mark.parametrize("point", POINTS)
def test_a_job_killed_at_any_point_ends_as_if_it_never_was(
    tmp_path: Path, unharmed: SmallLake, point: str
) -> None:
    lake = SmallLake.make(tmp_path / "lake")
    fill(lake)
    targets = ("-t", "customers|prices")

    killed = lake.run("job", "daily", "build", *targets, LAKEWRIGHT_FAILPOINT=f"{point}:kill")
    again = lake.run("job", "daily", "build", *targets)

    assert killed.code == -9
    assert again.code == 0, again.all
    for entity in ("customers", "prices"):
        assert content(lake, entity) == content(unharmed, entity)
        assert lake.version(entity) == unharmed.version(entity)
    verdicts = {item["verdict"] for item in lake.json("manifest", "ls")}
    assert verdicts == {"processed"}


def test_a_jvm_without_memory_fails_no_slice_and_with_more_the_result_is_exact(tmp_path: Path) -> None:
    """Told as what it is, whether Spark refuses to start or runs out on the way."""
    lake = SmallLake.make(tmp_path / "lake")
    model = lake.folder / "model" / "model.yml"
    grown = "processtype: merge\n    transformations: [{column: name, expression: 'repeat(name, size)'}]"
    model.write_text(model.read_text().replace("processtype: merge", grown))
    lake.slice("customers", "1", [{"id": key, "name": "0123456789", "size": 12_000_000} for key in range(3)])
    build = ("job", "daily", "build", "-t", "customers")

    refused = lake.run(*build, "--conf", "spark.driver.memory=400m")
    starved = lake.run(*build, "--conf", "spark.driver.memory=520m")
    fed = lake.run(*build)

    assert (refused.code, starved.code) == (1, 1), starved.all
    assert "Spark can't be started: [INVALID_DRIVER_MEMORY]" in refused.out
    assert "Spark's JVM ran out of memory" in starved.out
    assert "spark.driver.memory" in starved.out
    assert fed.code == 0, fed.all
    assert sorted((row["id"], len(row["name"])) for row in lake.silver("customers")) == [
        (key, 120_000_000) for key in range(3)
    ]
