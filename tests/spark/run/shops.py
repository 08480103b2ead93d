"""A project in a folder of a test, whose commands run in the test's session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_shop(folder: Path, model: str, spark: SparkSession) -> InProcess:
    """Return the commands of a project named `shop`, whose one module, `m.yml`, is a model."""
    (folder / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (folder / "m.yml").write_text(model)
    return InProcess(folder, spark)
