"""What is known of a cluster before Spark starts, and what its executors say; no JVM."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lakewright.errors import SparkUnavailable
from lakewright.spark.cluster import ExecutorFacts, check_facts, check_master, executor_facts_sql

DRIVER = ExecutorFacts("driver/10.0.0.1", "UTC", "4.2.0", "4.4.0")


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("master", ["local[*]", "local-cluster[2,1,1024]"])
def test_a_local_master_is_not_looked_for(master: str) -> None:
    check_master(master, 0.1, {})


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:{}", "spark://127.0.0.1:9,127.0.0.1:{}", "k8s://http://127.0.0.1:{}"]
)
def test_one_address_that_answers_is_enough(master: str, listening: int) -> None:
    check_master(master.format(listening), 5, {})


def test_a_master_that_is_away_is_refused_in_time_and_by_address() -> None:
    began = time.monotonic()
    with pytest.raises(SparkUnavailable, match=r"reached: 127\.0\.0\.1:9: Connection refused") as told:
        check_master("spark://127.0.0.1:9", 1, {})
    assert time.monotonic() - began < 5
    assert "nothing was claimed" in str(told.value.remedy)


def test_a_master_that_comes_up_meanwhile_is_waited_for() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        starts = threading.Timer(0.2, server.listen)
        starts.start()
        check_master(f"spark://127.0.0.1:{server.getsockname()[1]}", 20, {})
        assert starts.finished.is_set()


def test_yarn_needs_its_configuration() -> None:
    with pytest.raises(SparkUnavailable, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR"):
        check_master("yarn", 1, {})
    check_master("yarn", 1, {"YARN_CONF_DIR": "/etc/hadoop"})


def test_an_executor_says_its_host_time_zone_and_versions() -> None:
    line = 'w1/10.0.0.2 | sun.util.calendar.ZoneInfo[id="UTC",offset=0,dstSavings=0] | 4.2.0 | 4.4.0'
    assert ExecutorFacts.read(line) == replace(DRIVER, host="w1/10.0.0.2")
    assert executor_facts_sql().count("reflect(") == 4


@pytest.mark.parametrize(
    ("differs", "told"),
    [
        (
            {"timezone": "Europe/Paris"},
            "on w1 has the time zone Europe/Paris, the driver has UTC",
        ),
        ({"spark": "4.1.0"}, "the executor on w1 has Spark 4.1.0, the driver has 4.2.0"),
        ({"delta": "4.3.0"}, "the executor on w1 has Delta Lake 4.3.0, the driver has 4.4.0"),
    ],
)
def test_an_executor_that_differs_from_the_driver_is_refused(differs: dict[str, str], told: str) -> None:
    check_facts(DRIVER, [DRIVER, replace(DRIVER, host="w2")])
    with pytest.raises(SparkUnavailable, match=told):
        check_facts(DRIVER, [DRIVER, replace(DRIVER, host="w1", **differs)])
