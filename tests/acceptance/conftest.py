"""The tests' session, lent to one test at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The worker's session, for commands that run in this process.

    Commands derive sessions of their own from it. Nothing that they set may be left in it; what they put into
    the catalog, which all of them share, is dropped.
    """
    before = dict(spark.conf.getAll)
    views = {table.name for table in spark.catalog.listTables()}
    yield spark
    for database in spark.catalog.listDatabases():
        if database.name != "default":
            spark.sql(f"DROP DATABASE `{database.name}` CASCADE")
    for table in spark.catalog.listTables("default"):
        if table.name not in views and not table.isTemporary:
            spark.sql(f"DROP {'VIEW' if table.tableType == 'VIEW' else 'TABLE'} default.`{table.name}`")
    assert dict(spark.conf.getAll) == before
    assert {table.name for table in spark.catalog.listTables()} <= views
