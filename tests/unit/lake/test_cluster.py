"""What is refused on a cluster before Spark starts; no JVM."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.sessions import Started, no_session

from lakewright.errors import LakewrightError, SparkUnavailable, SpecError
from lakewright.lake import cluster
from lakewright.lake.cluster import (
    _check_same_folder,
    check_cluster_settings,
    check_written,
    prepare_cluster,
)
from lakewright.lake.lake import Lake
from lakewright.spark.cluster import ExecutorFacts
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


class Writer:
    """A session whose server writes files into another folder than it is told."""

    def __init__(self, elsewhere: str) -> None:
        self.elsewhere = elsewhere

    def range(self, _: int) -> Writer:
        return self

    def selectExpr(self, _: str) -> Writer:  # noqa: N802 - Spark's name
        return self

    @property
    def write(self) -> Writer:
        return self

    def text(self, folder: str) -> None:
        place = Path(folder + self.elsewhere)
        place.mkdir(parents=True)
        (place / "part-0.txt").write_text("here")


@pytest.mark.parametrize("elsewhere", ["", "-of-the-server"])
def test_a_server_that_writes_elsewhere_is_refused(tmp_path: Path, elsewhere: str) -> None:
    writer: Any = Writer(elsewhere)
    server = lake(str(tmp_path), master="sc://host:15002")
    with nullcontext() if not elsewhere else pytest.raises(SparkUnavailable, match="does not see it"):
        _check_same_folder(server, writer)


def test_nothing_starts_for_the_check_of_a_local_session() -> None:
    prepare_cluster(lake(master="local[2]"))
    with pytest.raises((AssertionError, LakewrightError), match="Spark was started"):
        prepare_cluster(lake("s3://b/lake"))


class FakeContext:
    """Spark's context, as far as the check of a cluster asks it."""

    master = STANDALONE


def test_executors_are_asked_once_for_each_lake_of_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    facts = ExecutorFacts("w1/10.0.0.2", "UTC", "4.2.0", "4.4.0")

    def ask(known: Lake, spark: object) -> list[ExecutorFacts]:
        del spark
        asked.append(known.settings.root_folder)
        if known.settings.root_folder.endswith("refused"):
            raise SparkUnavailable("no executor came")
        return [facts]

    monkeypatch.setattr(cluster, "_ask_executors", ask)
    monkeypatch.setattr(cluster, "_check_default_system", lambda *_: None)
    monkeypatch.setattr(cluster, "driver_facts", lambda _: facts)
    monkeypatch.setattr(cluster, "executor_cores", lambda _: 6)
    tuned: list[tuple[str, str]] = []

    def prepare(root: str, context: FakeContext) -> None:
        conf = SimpleNamespace(set=lambda key, value: tuned.append((key, value)))
        session: Any = SimpleNamespace(sparkContext=context, conf=conf)
        settings = SessionSettings(Path("/state"), master=STANDALONE)
        known = Lake(LakeSettings(root_folder=root), settings, sessions=Started(lambda _: session))
        monkeypatch.setattr(known, "_tag", lambda _: None)
        prepare_cluster(known)

    one, other = FakeContext(), FakeContext()
    prepare("s3://b/lake", one)
    prepare("s3://b/lake", one)
    assert asked == ["s3://b/lake"]
    prepare("s3://b/other", one)
    prepare("s3://b/lake", other)
    assert asked == ["s3://b/lake", "s3://b/other", "s3://b/lake"]
    assert tuned == [("spark.sql.shuffle.partitions", "12")] * 4, "each session is tuned"
    for _ in range(2):
        with pytest.raises(SparkUnavailable):
            prepare("s3://b/refused", one)
    assert asked[3:] == ["s3://b/refused"] * 2, "what failed is asked again"
