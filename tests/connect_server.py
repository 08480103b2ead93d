"""A server of Spark Connect on loopback, from PySpark's own jars, as a cluster of others would offer it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

from tests.stores.cluster import free_port

from lakewright.spark.conf import SessionSettings, session_conf
from lakewright.spark.jars import fetch_jars
from lakewright.spark.java import archive_options, find_java, java_home_for_spark
from lakewright.spark.releases import delta_jars, installed_release

START_SECONDS = 120
VARIABLE = "LAKEWRIGHT_TEST_CONNECT"
"""The variable with the address of a server of Spark Connect, in whose session tests run."""

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def running_server(folder: Path, conf: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a server in the `with` block, and give its URL, as `sc://127.0.0.1:15002`."""
    port = free_port()
    java = find_java(os.environ)
    settings = SessionSettings(folder, app_name="connect", master="local[2]", conf=dict(conf or {}))
    jars = fetch_jars(os.environ, delta_jars(installed_release()))
    keys = {
        **session_conf(settings, jars=jars, jvm_options=archive_options(java, os.environ), is_resident=True),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    submit = Path(spec.origin).parent / "bin" / "spark-submit"
    options = [part for key, value in keys.items() for part in ("--conf", f"{key}={value}")]
    environ = {
        **os.environ,
        "JAVA_HOME": str(java_home_for_spark(java, os.environ)),
        "SPARK_HOME": str(submit.parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log = folder / "connect.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [submit, "--class", SERVER, *options, "spark-internal"],
            env=environ,
            cwd=folder,
            stdout=sink,
            stderr=sink,
        )
    try:
        _wait(process, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import socket

    deadline = monotonic() + START_SECONDS
    while monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            sleep(0.2)
    raise RuntimeError(f"the server did not start: {log.read_text()}")
