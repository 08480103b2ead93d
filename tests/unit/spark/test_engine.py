"""Where PySpark's handles of the JVM are touched, and who asks whether Spark is a server."""

from __future__ import annotations

import re
from pathlib import Path

import lakewright

HANDLES = re.compile(r"\._(jdf|jsparkSession|jsc|jo|sc)\b|(?<!self)\._jvm\b|\bis_of_connect\b")


def test_only_the_package_of_spark_touches_the_handles_of_the_jvm() -> None:
    root = Path(str(lakewright.__file__)).parent
    found = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if HANDLES.search(file.read_text(encoding="utf-8")) and file.parent.name != "spark"
    }
    assert found == set()
