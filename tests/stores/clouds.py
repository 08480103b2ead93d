"""Object stores of Azure and Google on loopback, for tests; `scripts/emulators` installs their programs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

from tests.stores.s3 import free_port, running

from lakewright.lake.object_storage import ObjectStorage
from lakewright.spec.models.storage import StorageSettings

ROOT = Path(__file__).parents[2]
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that Azurite has, with its key that everyone knows."""


class Cloud:
    """A running store.

    Attributes:
        section: The `storage:` section of a project that uses it.
    """

    def __init__(self, section: dict[str, Any], url: str, create: Callable[[str], object]) -> None:
        self.section = section
        self._url = url
        self._create = create

    @property
    def storage(self) -> ObjectStorage:
        """The store as the product reaches it."""
        return ObjectStorage(StorageSettings.model_validate(self.section), {}, used=frozenset(self.section))

    def new_bucket(self) -> str:
        """Return the name of a new bucket."""
        name = f"lake-{uuid4()}"
        self._create(name)
        return name

    def place(self, bucket: str) -> str:
        """Return the location of a bucket."""
        return self._url.format(bucket)

    def put_at(self, bucket: str, key: str, text: str) -> None:
        """Write an object."""
        found, _ = self.storage.at(self.place(bucket))
        found.put(key, text.encode())


@contextmanager
def running_azure() -> Iterator[Cloud]:
    """Yield a store with the interface of Azure Blob Storage."""
    port = free_port()
    program = ROOT / ".tools/azurite/node_modules/.bin/azurite-blob"
    command = [
        str(program),
        "--inMemoryPersistence",
        "--silent",
        "--disableTelemetry",
        "--skipApiVersionCheck",
    ]
    with running([*command, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port):
        address = f"http://127.0.0.1:{port}"
        section = {"azure": {"endpoint_url": address, "credentials": "static", "account_key": KEY}}
        url = f"abfss://{{}}@{ACCOUNT}.dfs.core.windows.net"
        yield Cloud(section, url, lambda name: _create_container(address, name))


def _create_container(address: str, name: str) -> None:
    headers = {"x-ms-date": f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S GMT}", "x-ms-version": "2021-08-06"}
    signed = [
        "PUT",
        *[""] * 11,
        *(f"{key}:{text}" for key, text in headers.items()),
        f"/{ACCOUNT}/{ACCOUNT}/{name}",
        "restype:container",
    ]
    digest = hmac.new(base64.b64decode(KEY), "\n".join(signed).encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    urlopen(Request(f"{address}/{ACCOUNT}/{name}?restype=container", method="PUT", headers=headers)).close()


@contextmanager
def running_google() -> Iterator[Cloud]:
    """Yield a store with the interface of Google Cloud Storage."""
    port = free_port()
    with running([str(ROOT / ".tools/google-store"), f"127.0.0.1:{port}"], port):
        address = f"http://127.0.0.1:{port}"
        yield Cloud({"gcs": {"endpoint_url": address}}, "gs://{}", lambda name: _create_bucket(address, name))


def _create_bucket(address: str, name: str) -> None:
    body = json.dumps({"name": name}).encode()
    headers = {"Content-Type": "application/json"}
    urlopen(Request(f"{address}/storage/v1/b?project=p", body, headers)).close()


CLOUDS: Mapping[str, Callable[[], AbstractContextManager[Cloud]]] = {
    "azure": running_azure,
    "gcs": running_google,
}
"""What starts the store of each kind."""
