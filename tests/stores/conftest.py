"""Stores of every kind, for the suite that all of them must pass unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import create_loader
from tests.stores.cluster import empty_schema
from tests.stores.dynamodb_local import empty_table, running_dynamodb

from lakewright.manifest.store import Store
from lakewright.stores.registry import open_store

Settings = dict[str, Any]
KINDS = ["memory", "sqlite", "postgres", "dynamodb", "delta"]


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[Settings]:
    """Settings of an empty manifest in PostgreSQL."""
    with empty_schema(postgres_server) as url:
        yield {"kind": "postgres", "url": url}


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    """Credentials for this process and those it starts; DynamoDB Local takes any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "no-secret-of-anyone")
        yield


@pytest.fixture(scope="session", autouse=True)
def _descriptions_read_once() -> Iterator[None]:
    """Let all of boto3's clients share what it reads about AWS's services: 0.1 s each otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", cache(create_loader))
        yield


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[str]:
    """The address of a server of the tests' own."""
    with running_dynamodb() as url:
        yield url


@pytest.fixture
def dynamodb(dynamodb_server: str) -> Iterator[Settings]:
    """Settings of an empty manifest in DynamoDB."""
    with empty_table(dynamodb_server) as where:
        yield {"kind": "dynamodb", **where}


@pytest.fixture
def delta(tmp_path: Path) -> Settings:
    """Settings of an empty manifest in a Delta table."""
    return {"kind": "delta", "location": str(tmp_path / "state" / "manifest")}


@pytest.fixture
def sqlite(tmp_path: Path) -> Settings:
    """Settings of an empty manifest in SQLite."""
    return {"kind": "sqlite", "path": str(tmp_path / "state" / "manifest.db")}


@pytest.fixture
def memory() -> Settings:
    """Settings of an empty manifest in memory."""
    return {"kind": "memory"}


@pytest.fixture
def opened() -> Iterator[Callable[[Settings], Store]]:
    """Opens stores, and closes them after the test."""
    with ExitStack() as stack:

        def open_one(settings: Settings) -> Store:
            store = open_store(settings)
            stack.callback(store.close)
            return store

        yield open_one


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest) -> Settings:
    """Settings of an empty manifest, of each kind in turn."""
    found: Settings = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def sql_settings(request: pytest.FixtureRequest) -> Settings:
    """Settings of an empty manifest in a database, of each such kind in turn."""
    found: Settings = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["sqlite", "postgres", pytest.param("dynamodb", marks=pytest.mark.nightly)])
def shared_settings(request: pytest.FixtureRequest) -> Settings:
    """Settings of an empty manifest that many processes write to at once, of each such kind in turn.

    DynamoDB Local takes each race twice as long as both others; the contract holds it to the same rules.
    """
    found: Settings = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store(settings: Settings, opened: Callable[[Settings], Store]) -> Store:
    """An empty store, of each kind in turn."""
    return opened(settings)
