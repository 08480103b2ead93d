"""When Spark analyses a query: at once in a JVM of this process, with Spark Connect at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["analyzed", "is_of_connect"]

_INVALID = "CONNECT_INVALID_PLAN"
"""The condition of what a server refuses before Spark analyses it, such as a name that the rows lack."""


def is_of_connect(made: object) -> bool:
    """Return whether a session or a frame is one of Spark Connect."""
    return type(made).__module__.startswith("pyspark.sql.connect.")


def analyzed(frame: DataFrame) -> DataFrame:
    """Return the frame after its analysis, which Spark Connect otherwise leaves to its first use.

    Raises:
        AnalysisException: Spark rejects the query.
    """
    if not is_of_connect(frame):
        return frame
    from pyspark.errors import AnalysisException, PySparkException

    try:
        _ = frame.isStreaming  # it asks the server; the schema may be known from the frame before
    except PySparkException as error:
        if str(error.getCondition()).startswith(_INVALID):
            raise AnalysisException(str(error)) from error
        raise
    return frame
