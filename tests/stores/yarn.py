"""YARN on loopback: a resource manager and a node manager in one JVM, as Hadoop's own tests have it.

Hadoop's MiniYARNCluster comes from Maven Central (66 MB with what it needs) and is called through Py4J, so
that nothing must be compiled.

    python -m tests.stores.yarn FOLDER      runs one until its standard input ends
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lakewright.spark.jars import fetch_jars
from lakewright.spark.java import find_java, java_home_for_spark
from lakewright.spark.releases import Jar

ROOT = Path(__file__).parents[2]

JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-client-minicluster",
        "3.5.0",
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    # The shaded jar leaves out what makes certificates for the resource manager's proxy, and JUnit.
    Jar(
        "org.bouncycastle",
        "bcprov-jdk18on",
        "1.82",
        "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce",
    ),
    Jar(
        "org.bouncycastle",
        "bcpkix-jdk18on",
        "1.82",
        "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63",
    ),
    Jar(
        "org.bouncycastle",
        "bcutil-jdk18on",
        "1.82",
        "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d",
    ),
    Jar(
        "org.junit.jupiter",
        "junit-jupiter-api",
        "5.13.3",
        "1a15a52253a972c82c0dbf77759a983f5afed0583585cdc5b2a3beaa1f4ae0ac",
    ),
    Jar(
        "org.junit.platform",
        "junit-platform-commons",
        "1.13.3",
        "02cd66a55df750a123d8f761e6503e455ac108ff1b365d446e874ba3bc56ca89",
    ),
    Jar(
        "org.opentest4j",
        "opentest4j",
        "1.3.0",
        "48e2df636cab6563ced64dcdff8abb2355627cb236ef0bf37598682ddf742f1b",
    ),
)

SETTINGS = {
    "fs.defaultFS": "file:///",
    "yarn.resourcemanager.hostname": "127.0.0.1",
    "yarn.nodemanager.hostname": "127.0.0.1",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # An application master may take all that there is: there is one application.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    # A disk that is nearly full is no reason to refuse containers, nor is memory that the JVM only reserves.
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
}


@dataclass(frozen=True)
class Yarn:
    """A running cluster.

    Attributes:
        conf: The folder of its configuration, for `HADOOP_CONF_DIR`.
        folder: Where its node has the folders and the logs of containers.
    """

    conf: Path
    folder: Path

    def containers(self) -> set[str]:
        """Return the names of all containers that ran; the first one of an application is its master."""
        return {found.name for found in self.folder.rglob("container_*") if found.is_dir()}

    def log(self) -> str:
        """Return the end of what the cluster and its containers said."""
        files = [self.folder / "yarn.log", *self.folder.rglob("container_*/stderr")]
        return "\n".join(f"{file}:\n{file.read_text(errors='replace')[-3000:]}" for file in files)


@contextmanager
def running_yarn(folder: Path) -> Iterator[Yarn]:
    """Yield a cluster of one node, whose containers have their folders below `folder`."""
    folder.mkdir(parents=True)
    log = folder / "yarn.log"
    command = [sys.executable, "-m", "tests.stores.yarn", str(folder)]
    with (
        log.open("w") as sink,
        subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError(f"YARN did not start: {log.read_text(errors='replace')[-4000:]}")
            yield Yarn(folder / "conf", folder)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def run(folder: Path) -> None:
    """Run a cluster until the standard input ends."""
    gateway = _gateway(folder)
    jvm: Any = gateway.jvm
    settings = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
    for key, text in {**SETTINGS, "hadoop.tmp.dir": str(folder / "tmp")}.items():
        settings.set(key, text)
    cluster = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("lakewright", 1, 1, 1)
    cluster.init(settings)
    cluster.start()
    if not cluster.waitForNodeManagersToConnect(60_000):
        raise RuntimeError("no node registered")
    conf = folder / "conf"
    conf.mkdir()
    for name in ("core-site.xml", "yarn-site.xml"):
        sink = jvm.java.io.FileOutputStream(str(conf / name))
        cluster.getConfig().writeXml(sink)
        sink.close()
    print("ready", flush=True)
    sys.stdin.read()
    cluster.stop()


def _gateway(folder: Path) -> Any:
    from py4j.java_gateway import JavaGateway

    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    java = find_java(os.environ)
    # The node gives it to its containers.
    os.environ["JAVA_HOME"] = str(java_home_for_spark(java, os.environ))
    class_path = [*map(str, fetch_jars(os.environ, JARS)), f"{home}/jars/*"]
    return JavaGateway.launch_gateway(
        classpath=os.pathsep.join(class_path),
        jarpath=str(next((home / "jars").glob("py4j-*.jar"), "")),
        java_path=str(java.executable),
        javaopts=["-Xmx400m", "-XX:TieredStopAtLevel=1", f"-Dyarn.log.dir={folder}"],
        die_on_exit=True,
        enable_auth=True,
        cwd=str(folder),
        redirect_stdout=sys.stderr,
        redirect_stderr=sys.stderr,
    )


if __name__ == "__main__":
    run(Path(sys.argv[1]))
