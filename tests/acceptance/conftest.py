"""The tests' session, lent to one test at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DELTAS = "spark.sql.parquet.fieldId."
"""Delta switches such settings on, in whichever session is active."""


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The worker's session, for commands that run in this process.

    Commands derive sessions of their own from it. Nothing that they set may be left in it; what they put into
    the catalog, which all of them share, is dropped.
    """
    before = settings_of(spark)
    views = {table.name for table in spark.catalog.listTables()}
    yield spark
    for database in spark.catalog.listDatabases():
        if database.name != "default":
            spark.sql(f"DROP DATABASE `{database.name}` CASCADE")
    for table in spark.catalog.listTables("default"):
        if table.name not in views and not table.isTemporary:
            spark.sql(f"DROP {'VIEW' if table.tableType == 'VIEW' else 'TABLE'} default.`{table.name}`")
    assert settings_of(spark) == before
    assert {table.name for table in spark.catalog.listTables()} <= views


def settings_of(spark: SparkSession) -> dict[str, str]:
    return {key: value for key, value in dict(spark.conf.getAll).items() if not key.startswith(DELTAS)}
