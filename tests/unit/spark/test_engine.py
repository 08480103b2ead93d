"""Where PySpark's handles of the JVM are touched, and who asks whether Spark is a server."""

from __future__ import annotations

import re
from pathlib import Path

import lakewright
from lakewright.spark.engine import Packages

HANDLES = re.compile(r"\._(jdf|jsparkSession|jsc|jo|sc)\b|(?<!self)\._jvm\b|\bis_of_connect\b")


def test_only_the_package_of_spark_touches_the_handles_of_the_jvm() -> None:
    root = Path(str(lakewright.__file__)).parent
    found = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if HANDLES.search(file.read_text(encoding="utf-8")) and file.parent.name != "spark"
    }
    assert found == set()


def test_a_class_of_the_jvm_is_asked_for_once_by_its_whole_name() -> None:
    asked: list[str] = []

    class View:
        def __getattr__(self, name: str) -> str:
            asked.append(name)
            return name

    packages = Packages(View())
    hadoop = packages.org.apache.hadoop
    found = [hadoop.fs.Path, getattr(packages.io.delta, "package"), packages.long]  # noqa: B009
    assert found == asked == ["org.apache.hadoop.fs.Path", "io.delta.package", "long"]
