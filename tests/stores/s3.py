"""An object store with the interface of S3 on loopback, for tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3

from lakewright.lake.object_storage import ObjectStorage
from lakewright.spec.models.storage import StorageSettings

SERVER = """
import sys
from moto.server import create_backend_app
from werkzeug.serving import run_simple

run_simple("127.0.0.1", int(sys.argv[1]), create_backend_app("s3"), threaded=False)
"""
"""One request at a time: moto looks for an object and writes it in two steps, which its threads mix.

S3 alone: finding out which service a request is for takes moto as long as answering it.
"""

CONCURRENT = os.environ.get("LAKEWRIGHT_VERSITYGW") or shutil.which("versitygw")
"""The program of a store that answers requests at the same time, if this machine has it (CONTRIBUTING.md)."""


class Store:
    """A running store.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="tester",
            aws_secret_access_key="no-secret-of-anyone",
        )

    @property
    def section(self) -> dict[str, Any]:
        """The `storage:` section of a project that uses it."""
        keys = {"access_key": "tester", "secret_key": "no-secret-of-anyone"}
        return {"s3": {"endpoint_url": self.url, "credentials": "static", **keys}}

    @property
    def storage(self) -> ObjectStorage:
        """The store as the product reaches it."""
        return ObjectStorage(StorageSettings.model_validate(self.section), {}, used=frozenset({"s3"}))

    @property
    def options(self) -> dict[str, str]:
        """The settings for the `deltalake` package."""
        return self.storage.options("s3://lake")

    def new_bucket(self) -> str:
        """Return the name of a new bucket."""
        name = f"lake-{uuid4()}"
        self.client.create_bucket(Bucket=name)
        return name

    def place(self, bucket: str) -> str:
        """Return the location of a bucket."""
        return f"s3a://{bucket}"

    def put(self, bucket: str, **contents: str) -> None:
        """Write objects; in their keys, `__` stands for a slash."""
        for key, text in contents.items():
            self.put_at(bucket, key.replace("__", "/"), text)

    def put_at(self, bucket: str, key: str, text: str) -> None:
        """Write an object."""
        self.client.put_object(Bucket=bucket, Key=key, Body=text.encode())


@contextmanager
def running_store() -> Iterator[Store]:
    """Yield a store that runs in a process of its own.

    In a thread of this one it would hang: while the `deltalake` package waits for the store's answer, it may
    hold the lock of Python's interpreter.
    """
    port = free_port()
    with running([sys.executable, "-c", SERVER, str(port)], port):
        yield Store(f"http://127.0.0.1:{port}")


@contextmanager
def running_concurrent_store(folder: Path) -> Iterator[Store]:
    """Yield a store that keeps its objects as files in a folder; it must be installed."""
    assert CONCURRENT is not None
    objects, sidecar = folder / "objects", folder / "sidecar"
    objects.mkdir(parents=True)
    sidecar.mkdir()
    port = free_port()
    command = [CONCURRENT, "--port", f"127.0.0.1:{port}", "posix", "--sidecar", str(sidecar), str(objects)]
    root = {"ROOT_ACCESS_KEY": "tester", "ROOT_SECRET_KEY": "no-secret-of-anyone"}
    with running(command, port, **root):
        yield Store(f"http://127.0.0.1:{port}")


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, **environ: str) -> Iterator[None]:
    """Run a command that listens on a port, from then on."""
    quiet, environment = subprocess.DEVNULL, {**os.environ, **environ}
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment) as server:
        try:
            _wait_for(port, server)
            yield
        finally:
            server.kill()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while server.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError("the object store did not start")
