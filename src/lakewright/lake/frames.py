"""Frames that are handed to callers: their rows, in a session that the caller works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["frame_in"]


def frame_in(session: SparkSession, frame: DataFrame) -> DataFrame:
    """Return a frame as one of another session of the same application, without computing anything.

    Expressions keep the settings that they were analysed with, such as time zone and ANSI mode. A temporary
    view that is made of the frame belongs to the session. PySpark has no such method: a view of a frame that
    came from a new session could not be found by `spark.sql` of the caller's.
    """
    if frame.sparkSession is session or not hasattr(session, "_jsparkSession"):
        return frame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    java: Any = session
    plan = frame._jdf.queryExecution().analyzed()
    moved = java._jvm.org.apache.spark.sql.classic.Dataset.ofRows(java._jsparkSession, plan)
    return ClassicFrame(moved, session)
