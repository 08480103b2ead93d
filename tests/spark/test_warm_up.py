"""What a server does before its first request, so that it finds a warm JVM (rules of serving)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from lakewright.usecases import warm_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_server_processes_slices_of_a_project_that_nobody_sees(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "ROWS", 200)
    monkeypatch.setattr(warm_up, "SLICES", 2)
    keys = ("spark.sql.ansi.enabled", "spark.sql.shuffle.partitions")
    before = {key: spark.conf.get(key, None) for key in keys}
    warm_up.warm_up(spark, tmp_path, {})
    silver = tmp_path / "lake" / "silver"
    versions = {each.name: DeltaTable(str(each)).version() for each in silver.iterdir()}
    assert versions == dict.fromkeys(warm_up.STRATEGIES, warm_up.SLICES - 1)
    assert all((each / "_delta_log" / "_last_checkpoint").exists() for each in silver.iterdir())
    assert {key: spark.conf.get(key, None) for key in before} == before
