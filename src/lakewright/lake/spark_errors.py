"""Errors of Spark: their classes, and their messages without what only a parser of SQL needs."""

from __future__ import annotations

import re

__all__ = ["first_line", "spark_errors"]


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that reading a version may raise."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JJavaError)


def first_line(error: BaseException) -> str:
    """Return Spark's message without its SQLSTATE and position."""
    first = str(error).strip().partition("\n")[0]
    return re.sub(r"\s*(SQLSTATE: \w+)?[\s;.]*((\()?line \d+,? pos \d+(\))?)?;?$", "", first)
