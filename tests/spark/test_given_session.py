"""Python programs that have a Spark session of their own (A1)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.people import write_people

from lakewright import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN = {
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
}
GIVEN = """
relations:
  given: {kind: provided, table: global_temp.given}
  seen: {kind: delta, location: "${project.basedir}/lake/gold/seen"}
mappings:
  seen: {kind: sql, sql: "SELECT id, at, current_timezone() AS zone FROM given JOIN one USING (id)"}
  one: {kind: values, columns: {id: int}, records: [[1]]}
  given: {kind: relation, relation: given}
targets:
  seen: {kind: relation, mapping: seen, relation: seen}
jobs:
  seen: {targets: [seen]}
"""


@pytest.fixture
def users(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of a program, which has settings and views of its own."""
    session = spark.newSession()
    for key, value in OWN.items():
        session.conf.set(key, value)
    rows = session.sql("SELECT 1 AS id, timestamp'2024-01-01 00:00:00' AS at")
    rows.createOrReplaceTempView("mine")
    rows.createOrReplaceGlobalTempView("given")
    context = session.sparkContext
    tags = list(context.getJobTags())
    context.clearJobTags()
    context.addJobTag("mine")
    context.setLocalProperty("spark.scheduler.pool", "mine")
    session.createDataFrame([(1,)], "id int")  # makes it the active one
    yield session
    context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
    context.clearJobTags()
    for tag in tags:
        context.addJobTag(tag)
    session.catalog.dropGlobalTempView("given")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_people(tmp_path / "lake")
    module = tmp_path / "lake" / "model" / "seen.yml"
    module.write_text(GIVEN)
    return tmp_path / "lake"


def assert_unchanged(users: SparkSession) -> None:
    assert {key: users.conf.get(key) for key in OWN} == OWN
    assert users.sparkContext.getLocalProperty("spark.scheduler.pool") == "mine"
    assert set(users.sparkContext.getJobTags()) == {"mine"}
    assert users.getActiveSession() is users
    assert users.sql("SELECT count(*) AS n FROM mine").collect()[0].n == 1


def test_a_given_session_lends_its_jvm_and_its_global_views_and_stays_as_it_is_a1(
    users: SparkSession, folder: Path
) -> None:
    with Project.load(folder, spark=users) as project:
        assert project.run("daily").exit_code == 0
        assert project.run("seen").exit_code == 0
        assert_unchanged(users)

    assert_unchanged(users)
    (row,) = users.read.format("delta").load(str(folder / "lake" / "gold" / "seen")).collect()
    assert row.zone == "UTC"
    assert users.sql("SELECT at = (SELECT at FROM mine) AS same FROM global_temp.given").collect()[0].same


def test_a_session_that_is_there_is_used_in_the_same_way_a1(users: SparkSession, folder: Path) -> None:
    with Project.load(folder) as project:
        assert project.run("daily").exit_code == 0
        assert_unchanged(users)
    assert_unchanged(users)
    assert users.range(3).count() == 3


ZONED = """
mappings:
  listed: {kind: values, columns: {id: int, at: timestamp}, records: [[1, "2024-05-01T08:00:00Z"]]}
  joined: {kind: sql, sql: "SELECT id, at, hour(at) AS utc FROM listed"}
"""


@pytest.mark.filterwarnings("ignore:spark.sql.catalogImplementation:lakewright.errors.LakewrightWarning")
def test_frames_of_rows_from_python_follow_the_session_s_zone_and_have_views(
    users: SparkSession, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Their plans have RDDs of Python, but no function that computes with times."""
    (folder / "model" / "zoned.yml").write_text(ZONED)
    with Project.load(folder, spark=users) as project:
        for name, columns in (("listed", ["10"]), ("joined", ["10", "8"])):
            frame = project.mapping(name).read()
            frame.createOrReplaceTempView("listed_here")
            rows = users.sql(f"SELECT hour(at) AS own{', utc' if len(columns) > 1 else ''} FROM listed_here")
            assert [list(map(str, row)) for row in rows.collect()] == [columns], name
    assert not [each for each in caplog.records if "Python functions" in each.getMessage()]


PLAIN = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from lakewright import Project
from lakewright.errors import SparkUnavailable

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
refused = []
for given in (spark, None):
    try:
        with Project.load(sys.argv[1], spark=given) as project:
            project.run("daily")
    except SparkUnavailable as error:
        refused.append(error.message)
alive = spark.sql("SELECT 'alive'").collect()[0][0]
spark.stop()
try:
    Project.load(sys.argv[1]).run("daily")
except SparkUnavailable as error:
    refused.append(error.message)
print(alive, *refused, len(list(Path(sys.argv[1]).glob("**/_delta_log"))), sep="\\n")
"""


@pytest.mark.nightly
def test_a_session_without_delta_is_refused_before_anything_is_claimed_and_lives_on_a1(folder: Path) -> None:
    from lakewright.spark.java import find_java, java_home_for_spark

    environ = {**os.environ, "JAVA_HOME": str(java_home_for_spark(find_java(os.environ), os.environ))}

    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(folder)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )

    lacks = "it lacks spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension"
    has_none = f"the Spark session that runs in this process has no Delta Lake: {lacks}"
    left = "the JVM of this process was started without Delta Lake, by a session that has been stopped"
    assert done.stdout.splitlines() == ["alive", has_none, has_none, left, "0"]


TWO = """
import sys
from pyspark.sql import SparkSession
from lakewright import Project

with Project.load(sys.argv[1]) as first:
    assert first.run("daily").exit_code == 0
    with Project.load(sys.argv[1]) as second:
        assert second.app.lake.spark.range(2).count() == 2
    assert first.app.lake.spark.range(3).count() == 3
assert SparkSession.getActiveSession() is None
with Project.load(sys.argv[1]) as again:
    assert again.app.lake.spark.range(4).count() == 4
"""


@pytest.mark.nightly
def test_two_open_projects_share_a_jvm_which_the_last_one_stops_a1(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", TWO, str(folder)], check=True, timeout=180)


STOPPED = """
import sys
from pyspark.sql import SparkSession
from lakewright import Project
from lakewright.strategies import slice_load


def stop(point):
    if point == "before_commit":
        SparkSession.getActiveSession().stop()
        slice_load.reach_failpoint = lambda _: None


slice_load.reach_failpoint = stop
with Project.load(sys.argv[1]) as project:
    failed = project.run("daily")
    errors = [target.error for target in failed.targets() if target.error is not None]
    assert all("the Spark session was stopped meanwhile" in error.message for error in errors), errors
    assert errors and not project.status().plan.left, project.status()
    assert (again := project.run("daily")).exit_code == 0, [each.error for each in again.targets()]
"""


@pytest.mark.nightly
def test_a_session_that_the_user_stops_in_a_run_fails_no_slice(folder: Path) -> None:
    """Issue 11: the slice waited for an operator, and the error was one of Python's."""
    subprocess.run([sys.executable, "-c", STOPPED, str(folder)], check=True, timeout=180)
