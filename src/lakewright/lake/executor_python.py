"""Checks that the executors of a cluster can run a project's Python functions.

Lakewright runs no Python on executors, but the function of a `python` mapping may return a frame with Python
functions in it. With another minor version of Python on an executor, Spark fails when the rows are computed,
after other targets were written.

Source: the rules of storage and clusters, "2. Clusters".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from lakewright.errors import SparkUnavailable
from lakewright.lake.cluster import MOST_TASKS, cancelled_without_executors, lake_master
from lakewright.spark.cluster import is_cluster
from lakewright.spark.jvm import full_text

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from lakewright.lake.lake import Lake

__all__ = ["check_python", "has_python_functions", "runs_python"]

_passed: WeakSet[SparkContext] = WeakSet()
"""The contexts whose executors ran Python in this process. Asking them costs a job."""

_OTHER_VERSION = re.compile(r"worker has different version: (\S+) than that in driver: ([^\s,]+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)"')
_REMEDY = (
    "Install the driver's version of Python on the cluster, and name it by the environment variable "
    "PYSPARK_PYTHON or `config: spark.pyspark.python=…`; nothing was written."
)


def check_python(lake: Lake, frame: DataFrame, what: str) -> None:
    """Raise an error if a frame runs Python on the executors of a cluster, and they can't.

    Frames without Python functions, and those of a local session, need no check. The executors are asked
    once for each Spark context.

    Args:
        lake: The lake, which knows the cluster.
        frame: The frame; nothing of it is computed.
        what: What the frame is, for the message.

    Raises:
        SparkUnavailable: An executor has no such Python, or another minor version of it.
    """
    if not is_cluster(lake_master(lake)):
        return
    context = frame.sparkSession.sparkContext
    if context in _passed or not runs_python(frame):
        return
    tasks = min(max(context.defaultParallelism, 2), MOST_TASKS)
    with cancelled_without_executors(lake, frame.sparkSession):
        try:
            context.parallelize(range(tasks), tasks).foreach(lambda _: None)
        except Exception as error:
            refusal = _refusal(full_text(error), what)
            if refusal is None:
                raise
            raise refusal from error
    _passed.add(context)


def runs_python(frame: DataFrame) -> bool:
    """Return whether the executors run Python for a frame."""
    return _has_node(frame, _is_python)


def has_python_functions(frame: DataFrame) -> bool:
    """Return whether a frame calls Python functions, which compute with times of its session's zone.

    Rows that came from Python, as those of a `values` mapping or of `createDataFrame`, are none: Spark has
    them in its own form, in which times are instants.
    """
    return _has_node(frame, _is_function)


def _has_node(frame: DataFrame, is_wanted: Callable[[Any], bool]) -> bool:
    """Return whether a frame has a Python function in an expression, or a node that is wanted."""
    jvm: Any = frame.sparkSession._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    plan: Any = frame._jdf.queryExecution().analyzed()
    if plan.containsPattern(patterns.PYTHON_UDF()):
        return True
    subqueries = plan.subqueriesAll()
    plans = [plan, *(subqueries.apply(number) for number in range(subqueries.size()))]
    return any(is_wanted(node) for each in plans for node in _nodes(each))


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield a plan's nodes, except for those of its subqueries."""
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _is_python(node: Any) -> bool:
    """Return whether a node calls a table function, reads a data source or an RDD that is in Python."""
    # The lineage names the class of each RDD.
    is_rdd = node.getClass().getSimpleName() == "LogicalRDD"
    return _is_function(node) or (is_rdd and "PythonRDD" in str(node.rdd().toDebugString()))


def _is_function(node: Any) -> bool:
    """Return whether a node calls a table function, or reads a data source, that is in Python."""
    kind = node.getClass().getSimpleName()
    if kind == "Generate":
        return str(node.generator().getClass().getSimpleName()) == "PythonUDTF"
    return kind == "DataSourceV2Relation" and str(node.table().getClass().getSimpleName()) == "PythonTable"


def _refusal(told: str, what: str) -> SparkUnavailable | None:
    """Return the error for what Spark says of a Python that can't work, or None for another failure."""
    if (versions := _OTHER_VERSION.search(told)) is not None:
        reason = f"executors have Python {versions[1]}, the driver has {versions[2]}"
    elif (program := _NO_PROGRAM.search(told)) is not None:
        reason = f"executors have no Python at {program[1]}"
    else:
        return None
    return SparkUnavailable(f"{what} can't run its Python functions: {reason}", remedy=_REMEDY)
