"""Commands called in this process, on the session of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_project_is_run_queried_tested_and_destroyed_on_a_shared_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert InProcess(tmp_path, spark).run("init", "a lake").code == 0
    people = InProcess(tmp_path / "a lake", spark)

    assert people.json("job", "daily", "build")["status"] == "SUCCESS"
    assert people.json("sql", "SELECT count(*) AS n FROM people") == [{"n": 3}]
    assert people.json("test")["status"] == "SUCCESS"
    assert {item["verdict"] for item in people.json("manifest", "ls")} == {"processed"}
    assert people.json("job", "daily", "destroy", "--yes")["status"] == "SUCCESS"
    assert spark.range(3).count() == 3
