"""A JVM that has too little memory: told as what it is, and no slice fails by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.lake import SmallLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.nightly
def test_a_jvm_without_memory_fails_no_slice_and_with_more_the_result_is_exact(
    tmp_path: Path, session: SparkSession
) -> None:
    """Whether Spark refuses to start or runs out on the way."""
    lake = SmallLake.make(tmp_path / "lake", session)
    model = lake.folder / "model" / "model.yml"
    grown = "processtype: merge\n    transformations: [{column: name, expression: 'repeat(name, size)'}]"
    model.write_text(model.read_text().replace("processtype: merge", grown))
    lake.slice("customers", "1", [{"id": key, "name": "0123456789", "size": 12_000_000} for key in range(3)])
    build = ("job", "daily", "build", "-t", "customers")

    refused = lake.process.run(*build, "--conf", "spark.driver.memory=400m")
    starved = lake.process.run(*build, "--conf", "spark.driver.memory=520m")
    fed = lake.run(*build)

    assert (refused.code, starved.code) == (1, 1), starved.all
    assert "Spark can't be started: [INVALID_DRIVER_MEMORY]" in refused.err
    assert "Spark's JVM ran out of memory" in starved.err
    assert "spark.driver.memory" in starved.err
    assert fed.code == 0, fed.all
    assert sorted((row["id"], len(row["name"])) for row in lake.silver("customers")) == [
        (key, 120_000_000) for key in range(3)
    ]
