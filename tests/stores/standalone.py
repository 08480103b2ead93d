"""A standalone Spark cluster on loopback: a master and workers, from the jars of PySpark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from lakewright.spark.java import find_java, java_home_for_spark

SECONDS_TO_START = 90


@dataclass
class Standalone:
    """A running cluster.

    Attributes:
        master: The URL of the master.
        folder: Where the workers keep the folders of their executors.
        workers: The processes of the workers.
    """

    master: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors at once, as if its machine had lost power."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)

    def executor_folders(self) -> list[Path]:
        """Return the working folders that executors had."""
        return sorted(self.folder.glob("worker-*/app-*/*"))


@contextmanager
def running_standalone(folder: Path, *, workers: int = 2, cores: int = 1) -> Iterator[Standalone]:
    """Yield a cluster whose workers have a working folder each, below `folder`."""
    with ExitStack() as stack:
        master, log = _start(stack, folder, "master", "Master", "--host", "127.0.0.1", "--port", "0")
        url = _awaited(log, master, r"Starting Spark master at (spark://\S+)")
        cluster = Standalone(url, folder)
        for number in range(workers):
            own = folder / f"worker-{number}"
            options = ("--host", "127.0.0.1", "-c", str(cores), "-m", "900m", "-d", str(own), url)
            process, log = _start(stack, folder, own.name, "Worker", *options)
            cluster.workers.append(process)
            _awaited(log, process, "(Successfully registered with master)")
        yield cluster


def _start(
    stack: ExitStack, folder: Path, name: str, kind: str, *options: str
) -> tuple[subprocess.Popen[bytes], Path]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    java = java_home_for_spark(find_java(os.environ), os.environ)
    environ = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        # Executors inherit it: of the driver's project they see nothing.
        "HOME": str(folder),
    }
    command = [
        *(str(java / "bin" / "java"), "-Xmx200m", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/jars/*"),
        *("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"),
        *(f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--webui-port", "0", *options),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=folder, env=environ, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
        )
    stack.callback(_end, process)
    return process, log


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _awaited(log: Path, process: subprocess.Popen[bytes], pattern: str) -> str:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.2)
    raise RuntimeError(f"the cluster did not start: {log.read_text(errors='replace')[-2000:]}")
