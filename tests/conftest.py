"""What tests of several folders need: a PostgreSQL server."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.stores.cluster import programs, running_cluster


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server: one that is given, or one of the tests' own."""
    given = os.environ.get("LAKEWRIGHT_TEST_POSTGRES")
    if given:
        yield given
        return
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL isn't installed, and LAKEWRIGHT_TEST_POSTGRES names no server")
    with running_cluster(found) as cluster:
        yield cluster.url
