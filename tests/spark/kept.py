"""Folders that the tests of a file build once, and that are put back for each test as they were built."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.lake.observation import forget_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def put_back(folder: Path, build: Callable[[], object], spark: SparkSession) -> None:
    """Leave a folder as `build` does, which is called only if the folder has not been built before.

    The folder stays in its place, which the manifest names.
    """
    kept = folder.with_name(f"{folder.name}_as_built")
    if not kept.exists():
        build()
        shutil.copytree(folder, kept)
        return
    tables = [str(log.parent) for log in folder.rglob("_delta_log")]
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    for table in tables:
        forget_log(spark, table)
