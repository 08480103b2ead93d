"""A lake for each test, and ways in which its tables are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.strategies.bench import SmallLake, in_way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SmallLake:
    return SmallLake(spark, tmp_path)


@pytest.fixture
def _marked_in_files() -> Iterator[None]:
    """Mark changed rows in their files, also where the product would write a table so small anew."""
    with in_way("marked"):
        yield
