"""A small clean lake, written once a module."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.clean_lake import write_clean_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 3
"""Slices of each entity, and builds of each target."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clean_lake(
        tmp_path_factory.mktemp("lake") / "p", entities=2, targets=3, slices=DAYS, builds=DAYS
    )


@pytest.fixture
def lake(made: Path) -> Path:
    """The lake, in the place that its manifest names, as it was made."""
    kept = made.with_name("kept")
    if not kept.exists():
        shutil.copytree(made, kept)
    shutil.rmtree(made)
    shutil.copytree(kept, made)
    return made


@pytest.fixture(scope="session")
def spark(plain: SparkSession) -> SparkSession:
    """A session that stands in for Spark's."""
    return plain
