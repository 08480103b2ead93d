"""What is refused on a cluster before Spark starts; no JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions import no_session

from lakewright.errors import LakewrightError, SparkUnavailable, SpecError
from lakewright.lake.cluster import check_cluster_settings, check_written, prepare_cluster
from lakewright.lake.lake import Lake
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings

STANDALONE = "spark://host:7077"


def lake(
    root: str = "/lake", master: str = STANDALONE, *, shared: bool = False, conf: dict[str, str] | None = None
) -> Lake:
    settings = SessionSettings(Path("/state"), master=master, conf=conf or {}, shares_folders=shared)
    return Lake(LakeSettings(root_folder=root), settings, sessions=no_session)


@pytest.mark.parametrize("root", ["/lake", "file:///lake"])
@pytest.mark.parametrize("master", [STANDALONE, "yarn", "k8s://https://host"])
def test_a_lake_on_a_local_disk_is_refused_on_a_cluster(root: str, master: str) -> None:
    with pytest.raises(SpecError, match=f"the lake is at {root}, a folder of this machine") as told:
        check_cluster_settings(lake(root, master), has_entities=True)
    assert "`cluster: {shared: true}`" in str(told.value.remedy)


@pytest.mark.parametrize(
    "known",
    [
        lake(shared=True),
        lake("s3a://bucket/lake"),
        lake("hdfs://name/lake"),
        lake(master="local[4]"),
        lake(master="local-cluster[2,1,1024]"),
        lake(conf={"spark.master": "local"}),
    ],
)
def test_a_lake_that_all_see_is_taken(known: Lake) -> None:
    check_cluster_settings(known, has_entities=True)


def test_only_entities_need_the_lake() -> None:
    check_cluster_settings(lake(), has_entities=False)


def test_the_warehouse_of_this_machine_is_refused_unless_the_catalog_is_elsewhere() -> None:
    hive = {"spark.sql.catalogImplementation": "hive"}
    with pytest.raises(SpecError, match="the warehouse of the catalog is at /state"):
        check_cluster_settings(lake("s3://b/lake", conf=hive), has_entities=True)
    elsewhere = {**hive, "spark.hadoop.hive.metastore.uris": "thrift://host:9083"}
    check_cluster_settings(lake("s3://b/lake", conf=elsewhere), has_entities=True)


def test_a_target_that_would_be_written_to_the_disks_of_executors_is_refused() -> None:
    with pytest.raises(SpecError, match="rows would be lost"):
        check_written(lake("s3://b/lake"), "/exports/names", "the relation 'names'")
    check_written(lake("s3://b/lake"), "s3a://b/names", "the relation 'names'")
    check_written(lake("s3://b/lake"), None, "a table of the catalog")


def test_spark_connect_is_refused_with_the_reason() -> None:
    remote = lake("s3://b/lake", conf={"spark.remote": "sc://host:15002"})
    with pytest.raises(SparkUnavailable, match="Spark Connect is not supported: commits") as told:
        check_cluster_settings(remote, has_entities=True)
    assert "cluster: {master:" in str(told.value.remedy)


def test_nothing_starts_for_the_check_of_a_local_session() -> None:
    prepare_cluster(lake(master="local[2]"))
    with pytest.raises((AssertionError, LakewrightError), match="Spark was started"):
        prepare_cluster(lake("s3://b/lake"))
