"""Compaction: the same rows in fewer files, whatever happens meanwhile; slices go on as before.

Headings are those of `processing-strategies.md`; K is the faults' number.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity

from lakewright.errors import LeaseHeld
from lakewright.strategies.changes import compare
from lakewright.targets.entity.maintenance import look_at_silver, maintain
from lakewright.targets.lease import lease_key, table_resource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.entity import Entity

OFTEN = {"maintenance": {"small_files": 2, "file_mib": 1, "marked_rows": 0.1}}


pytestmark = pytest.mark.usefixtures("_marked_in_files")  # a table that is written anew needs no upkeep


def rows(first: int, last: int, value: str) -> list[dict[str, Any]]:
    return [{"id": key, "v": value} for key in range(first, last)]


def live(lake: SmallLake, things: Entity) -> set[str]:
    return set(lake.delta(things).get_add_actions(flatten=True).column("path").to_pylist())


@pytest.mark.parametrize("strategy", ["historic", pytest.param("merge", marks=pytest.mark.nightly)])
def test_rows_stay_and_slices_go_on_after_compaction(lake: SmallLake, strategy: str) -> None:
    """ "Merge Strategy", "Historic Strategy": what is compacted is compared as before."""
    things = entity(strategy, settings=OFTEN)
    lake.load(things, "s1", rows(0, 9, "a"))
    assert not maintain(lake.lake, lake.leases(), things).is_done
    lake.load(things, "s2", rows(0, 5, "b"))
    before, version = lake.rows(things), lake.version(things)
    assert look_at_silver(lake.lake, things).reasons

    done = maintain(lake.lake, lake.leases(), things)

    assert (done.is_done, done.added, lake.version(things)) == (True, 1, version + 1)
    assert lake.rows(things) == before
    assert not maintain(lake.lake, lake.leases(), things).is_done
    again = lake.load(things, "s3", [*rows(0, 2, "c"), *rows(2, 5, "b")])
    assert (again.inserted, again.changed) == (0, 2)
    assert not list(lake.store.documents("lease"))


@pytest.mark.nightly
def test_who_dies_in_the_middle_leaves_the_same_rows(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the commit nothing has happened, after it all has."""
    things = entity("historic", settings=OFTEN)
    for number in range(3):
        lake.load(things, f"s{number}", rows(0, 5, str(number)))
    before = lake.rows(things)
    for point in ("before_compaction", "after_compaction"):

        def die(name: str, point: str = point) -> None:
            if name == point:
                raise OSError(name)

        with monkeypatch.context() as patch:
            patch.setattr("lakewright.targets.entity.maintenance.reach_failpoint", die)
            with pytest.raises(OSError, match=point):
                maintain(lake.lake, lake.leases(), things)
        assert lake.rows(things) == before
    # What a killed writer leaves behind is in no version.
    (folder,) = (lake.root / "silver").rglob("_delta_log")
    (folder.parent / "part-00000-half.snappy.parquet").write_bytes(b"PAR1")
    assert lake.rows(things) == before
    assert lake.load(things, "s9", rows(0, 5, "2")).unchanged == 5


COMPACT = """
import sys
from pathlib import Path
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session_builder import build_session
from lakewright.targets.entity.maintenance import maintain
from tests.spark.strategies.bench import SmallLake
from tests.spark.strategies.test_upkeep import OFTEN, entity
root = Path(sys.argv[1])
lake = SmallLake.shared(build_session(SessionSettings(root / "state", master="local[1]")), root)
things = entity("historic", settings=OFTEN)
print("ready", flush=True)
maintain(lake.lake, lake.leases(), things)
"""


@pytest.mark.nightly
def test_a_compaction_that_is_killed_at_its_first_file_changes_no_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """K14: kill -9 of the process and its JVM; the next run takes the lease over and goes on."""
    lake = SmallLake.shared(spark, tmp_path)
    things = entity("historic", settings=OFTEN)
    for number in range(3):
        lake.load(things, f"s{number}", rows(0, 5, str(number)))
    before, files = lake.rows(things), lake.files(things)
    run = subprocess.Popen(
        [sys.executable, "-c", COMPACT, str(tmp_path)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    while run.poll() is None and lake.files(things) == files:
        time.sleep(0.001)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    assert lake.files(things) > files

    assert lake.rows(things) == before
    assert lake.load(things, "s8", rows(0, 5, "2")).unchanged == 5
    maintain(lake.lake, lake.leases(), things)
    assert len(live(lake, things)) == 1
    assert lake.rows(things) == before


@pytest.mark.nightly
def test_a_slice_that_a_compaction_overtakes_is_compared_anew(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Historic Strategy": each change is applied once, whoever writes meanwhile."""
    things = entity("historic", settings=OFTEN)
    lake.load(things, "s1", rows(0, 5, "a"))
    lake.load(things, "s2", rows(0, 3, "b"))

    calls = []

    def compare_and_compact(*given: Any) -> Any:
        calls.append(given)
        found = compare(*given)
        if len(calls) == 1:
            assert maintain(lake.lake, lake.leases(), things).is_done
        return found

    monkeypatch.setattr("lakewright.strategies.writing.compare", compare_and_compact)
    summary = lake.load(things, "s3", rows(0, 5, "c"))

    assert len(calls) == 2
    assert (summary.updated, len(lake.rows(things))) == (5, 13)


@pytest.mark.nightly
@pytest.mark.nightly
def test_a_table_that_another_run_writes_is_left_alone(lake: SmallLake) -> None:
    things = entity(settings=OFTEN)
    lake.load(things, "s1", rows(0, 5, "a"))
    lake.load(things, "s2", rows(3, 9, "b"))
    resource = table_resource(things.places(lake.lake.settings).silver)
    other = lake.leases().acquire(lease_key(resource))
    with pytest.raises(LeaseHeld):
        maintain(lake.lake, lake.leases(), things)
    lake.leases().release(other)
    assert maintain(lake.lake, lake.leases(), things).is_done


@pytest.mark.nightly
def test_a_file_large_enough_stays_as_it_is(lake: SmallLake) -> None:
    """ "Historic Strategy": versions that ended long ago aren't written again and again."""
    noise = random.Random(1)
    things = entity("historic", settings=OFTEN)
    lake.load(things, "s1", [{"id": key, "v": noise.randbytes(1_000).hex()} for key in range(3_000)])
    (large,) = live(lake, things)
    for number in (2, 3):
        lake.load(things, f"s{number}", rows(0, 20, str(number)))

    assert maintain(lake.lake, lake.leases(), things).is_done

    assert large in live(lake, things)
    assert len(live(lake, things)) == 2


@pytest.mark.nightly
def test_only_files_beyond_retention_are_removed(lake: SmallLake) -> None:
    """`vacuum: true`: what no version within the table's retention needs, and never a younger one."""
    things = entity(
        settings={
            "maintenance": {**OFTEN["maintenance"], "vacuum": True},
            "table_properties": {"delta.deletedFileRetentionDuration": "interval 48 hours"},
        }
    )
    lake.load(things, "s1", rows(0, 9, "a"))
    lake.load(things, "s2", rows(0, 5, "b"))
    first, before = lake.files(things), lake.rows(things)

    assert maintain(lake.lake, lake.leases(), things).is_done
    assert first < lake.files(things)

    (log,) = (lake.root / "silver").rglob("_delta_log")
    old, young = log.parent / "part-old.snappy.parquet", log.parent / "part-young.snappy.parquet"
    for file, age in ((old, 49), (young, 47)):
        file.write_bytes(b"PAR1")
        then = file.stat().st_mtime - age * 3600
        os.utime(file, (then, then))
    live_before = live(lake, things)
    for number in (3, 4):
        lake.load(things, f"s{number}", rows(0, 5, str(number)))
    assert maintain(lake.lake, lake.leases(), things).is_done

    assert (old.exists(), young.exists()) == (False, True)
    assert first | live_before <= lake.files(things)
    assert [row[:2] for row in lake.rows(things, "id", "v")][5:] == [(n, "a") for n in range(5, 9)]
    assert len(before) == len(lake.rows(things))
