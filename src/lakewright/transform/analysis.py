"""When Spark analyses a query: at once in a JVM of this process, with Spark Connect at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["analyzed", "is_of_connect"]


def is_of_connect(made: object) -> bool:
    """Return whether a session or a frame is one of Spark Connect."""
    return type(made).__module__.startswith("pyspark.sql.connect.")


def analyzed(frame: DataFrame) -> DataFrame:
    """Return the frame after its analysis, which Spark Connect otherwise leaves to its first use.

    Raises:
        AnalysisException: Spark rejects the query.
    """
    if is_of_connect(frame):
        _ = frame.isStreaming  # it asks the server; the schema may be known from the frame before
    return frame
