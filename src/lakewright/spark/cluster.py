"""Checks of a cluster before Spark starts there, and what its executors say of themselves afterwards.

Source: the rules of storage and clusters, "2. Clusters".
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakewright.errors import SparkUnavailable
from lakewright.spark.conf import is_connect, local_cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LONGEST_CONNECTION = 10.0
"""Seconds for a connection to the master: it answers at once, or a network swallows the packets."""

_CONNECT_PORT = 15002
"""Where a server of Spark Connect listens if its address names no port."""

PAUSE = 0.5
"""Seconds between two attempts to connect."""

_FACTS = (
    "reflect('java.net.InetAddress', 'getLocalHost')",
    "reflect('java.util.TimeZone', 'getDefault')",
    "reflect('org.apache.spark.SparkBuildInfo', 'spark_version')",
    "reflect('io.delta.package', 'VERSION')",
)
"""What an executor says: its host, its time zone, its Spark, and the Delta of the jars that it was sent."""

_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """What a JVM of Spark says of itself: its host, time zone, and versions of Spark and Delta."""

    host: str
    timezone: str
    spark: str
    delta: str

    @classmethod
    def read(cls, line: str) -> ExecutorFacts:
        """Return the facts of a line that the expression of `executor_facts_sql` gave."""
        host, zone, spark, delta = line.split(_SEPARATOR)
        name = re.search(r'id="([^"]*)"', zone)
        return cls(host, zone if name is None else name[1], spark, delta)


def is_cluster(master: str) -> bool:
    """Return whether a master's executors are, or may be, on other machines.

    Example:
        >>> is_cluster("spark://host:7077"), is_cluster("local[*]"), is_cluster("local-cluster[2,1,1024]")
        (True, False, False)
    """
    return local_cores(master) is None and not master.startswith("local-cluster")


def is_elsewhere(master: str) -> bool:
    """Return whether a master works on other machines; a server of Spark Connect on loopback does not.

    Example:
        >>> is_elsewhere("spark://127.0.0.1:7077"), is_elsewhere("sc://127.0.0.1:15002/;token=x")
        (True, False)
    """
    is_loopback = is_connect(master) and urlsplit(master).hostname in ("localhost", "127.0.0.1", "::1")
    return is_cluster(master) and not is_loopback


def check_master(master: str, patience: float, environ: Mapping[str, str]) -> None:
    """Raise an error if the master of a cluster, or a server, can't be reached; a local one is not checked.

    Without this check, Spark tries for a minute, and then says that its context was stopped.

    Args:
        master: URL of the master.
        patience: Seconds after which to give up.
        environ: The environment variables.

    Raises:
        SparkUnavailable: No address of the master accepts a connection, or YARN's configuration is missing.
    """
    if master == "yarn" and not (environ.get("HADOOP_CONF_DIR") or environ.get("YARN_CONF_DIR")):
        raise SparkUnavailable(
            "the master is yarn, but neither HADOOP_CONF_DIR nor YARN_CONF_DIR says where YARN is",
            remedy="Set HADOOP_CONF_DIR to the folder with yarn-site.xml and core-site.xml.",
        )
    addresses = list(_addresses(master))
    if not addresses:
        return
    deadline = time.monotonic() + patience
    while True:
        failures = [_failure(host, port, deadline) for host, port in addresses]
        if None in failures:
            return
        if time.monotonic() + PAUSE >= deadline:
            break
        time.sleep(PAUSE)
    causes = "; ".join(
        f"{host}:{port}: {failure}" for (host, port), failure in zip(addresses, failures, strict=True)
    )
    raise SparkUnavailable(
        f"the master {master} can't be reached: {causes}",
        remedy="Check that it runs and that its address is right (`cluster: {master: …}`); nothing was "
        "claimed.",
    )


def _addresses(master: str) -> Iterator[tuple[str, int]]:
    if master.startswith("spark://"):
        for address in master.removeprefix("spark://").split(","):
            host, _, port = address.rpartition(":")
            yield host.strip("[]"), int(port)
    elif is_connect(master):
        parts = urlsplit(master)
        yield parts.hostname or "", parts.port or _CONNECT_PORT
    elif master.startswith("k8s://"):
        url = master.removeprefix("k8s://")
        parts = urlsplit(url if "://" in url else f"https://{url}")
        yield parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)


def _failure(host: str, port: int, deadline: float) -> str | None:
    """Return why an address accepts no connection, or None if it does."""
    import socket

    left = max(0.1, min(LONGEST_CONNECTION, deadline - time.monotonic()))
    try:
        with socket.create_connection((host, port), timeout=left):
            return None
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__


def executor_facts_sql() -> str:
    """Return an SQL expression with what the JVM says that computes it."""
    return f"concat_ws('{_SEPARATOR}', {', '.join(_FACTS)})"


def driver_facts(session: SparkSession) -> ExecutorFacts:
    """Return what the driver says; its Delta is the one whose jars it sends."""
    jvm: Any = session._jvm
    host = str(jvm.java.net.InetAddress.getLocalHost())
    zone = str(jvm.java.util.TimeZone.getDefault().getID())
    return ExecutorFacts(host, zone, str(session.version), str(jvm.io.delta.package.VERSION()))


def check_facts(driver: ExecutorFacts, executors: Iterable[ExecutorFacts]) -> None:
    """Raise an error if an executor has another time zone, Spark or Delta than the driver.

    Raises:
        SparkUnavailable: With the first executor that differs.
    """
    for each in executors:
        for name, ours, theirs in (
            ("the time zone", driver.timezone, each.timezone),
            ("Spark", driver.spark, each.spark),
            ("Delta Lake", driver.delta, each.delta),
        ):
            if ours != theirs:
                raise SparkUnavailable(
                    f"the executor on {each.host} has {name} {theirs}, the driver has {ours}",
                    remedy="Leave out -Duser.timezone of the executors' Java options (config), and install "
                    "the driver's version of Spark on the cluster; nothing was claimed.",
                )


def executor_cores(session: SparkSession) -> int:
    """Return how many tasks the executors run at once; 0 if their number changes with the work."""
    context = session.sparkContext
    if str(context.getConf().get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        return 0
    return int(context.defaultParallelism)
