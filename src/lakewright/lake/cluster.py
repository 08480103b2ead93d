"""Checks that the executors of a cluster can do the lake's work: before any slice is claimed.

An executor that writes to a folder of its own machine loses the rows without an error: Spark's committer
finds nothing to publish, and succeeds.

Source: the rules of storage and clusters, "2. Clusters".
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from lakewright.errors import Fault, LakewrightError, SparkUnavailable, SpecError
from lakewright.lake.files import files_at
from lakewright.lake.paths import is_stored, join, local_path
from lakewright.spark.causes import causes_of
from lakewright.spark.cluster import (
    ExecutorFacts,
    check_facts,
    driver_facts,
    executor_cores,
    executor_facts_sql,
    is_cluster,
    is_elsewhere,
)
from lakewright.spark.conf import CATALOG, is_connect, shuffle_conf
from lakewright.spark.engine import jvm_of
from lakewright.spark.jvm import full_text, is_jvm_failure
from lakewright.transform.plans import analyzed_plans, kind_of, nodes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake


log = logging.getLogger(__name__)

FOLDER = ".lakewright"
"""Folder of the lake for the files that executors write to show that they can."""

MOST_TASKS = 64
"""Tasks of the check at most: on a large cluster it need not ask every core."""

_passed: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The lakes that the executors of a context were checked for in this process. Asking them costs two jobs."""

_CATALOG_ELSEWHERE = {"spark.hadoop.hive.metastore.uris", "spark.sql.warehouse.dir"}
"""Keys with which a user says where the tables of the catalog are."""


def check_written(lake: Lake, location: str, what: str) -> None:
    """Raise an error if the executors of a cluster can't see a location that Spark is to read or write.

    Args:
        lake: The lake, which knows the cluster.
        location: A path or a URI.
        what: What is at the location, for the message.

    Raises:
        SpecError: It is a folder of this machine, and not one that all machines of the cluster share.
    """
    master = lake_master(lake)
    if lake.session.shares_folders or not is_elsewhere(master) or local_path(location) is None:
        return
    message = (
        f"{what} is at {location}, a folder of this machine, but Spark works on {master}: its executors "
        "would read and write folders of their own machines, and rows would be lost"
    )
    remedy = (
        "Put it into an object store or HDFS, or declare `cluster: {shared: true}` if all machines of the "
        "cluster see that folder under this path."
    )
    raise SpecError([Fault(message, remedy=remedy, subject=what)])


def check_cluster_settings(lake: Lake, *, has_entities: bool) -> None:
    """Raise an error if the settings alone show that slices can't be processed; nothing is started.

    Raises:
        SpecError: The lake or the warehouse is in a folder that the cluster's executors don't see.
    """
    if not has_entities:
        return
    check_written(lake, lake.settings.root_folder, "the lake")
    conf = lake.session.conf
    if conf.get(CATALOG) == "hive" and not _CATALOG_ELSEWHERE & conf.keys():
        check_written(lake, str(lake.session.state_folder), "the warehouse of the catalog")


def lake_master(lake: Lake) -> str:
    """Return the master of the session that runs in this process, or of the one that the lake would start."""
    return lake.sessions.master(lake.session)


def prepare_cluster(lake: Lake) -> None:
    """Start the session if it works on a cluster or a server, and check that, once; else do nothing.

    Called before slices are claimed: what fails here leaves no trace in the manifest.

    Raises:
        SparkUnavailable: The cluster gives no executor in time, or one that can't do the work; or executors
            of a server of Spark Connect do not see the same lake as this machine.
        SpecError: The lake is where the executors can't see it, or the server's way to commit to the store
            loses commits of two drivers.
    """
    master, root = lake_master(lake), lake.settings.root_folder
    if not is_cluster(master):
        return
    spark, is_server = lake.spark, is_connect(master)
    passed = _passed.setdefault(spark if is_server else spark.sparkContext, set())
    is_new = root not in passed
    if is_new and is_server:
        _check_log_store(lake, spark)
        _check_same_folder(lake, spark)
    elif is_new:
        _check_default_system(lake, spark)
        check_facts(driver_facts(spark), _ask_executors(lake, spark))
    passed.add(root)
    cores = 0 if is_server else executor_cores(spark)
    for key, value in shuffle_conf(cores).items():
        if key not in lake.session.conf:
            spark.conf.set(key, value)
    if is_new:
        known = f"{cores} cores" if cores else "as many cores as the work asks for"
        log.info("Spark works on %s", f"the server {master}" if is_server else f"{master}: {known}")


def _check_same_folder(lake: Lake, spark: SparkSession) -> None:
    folder = join(lake.settings.root_folder, FOLDER, f"server-{uuid4()}")
    try:
        spark.range(1).selectExpr("'here' AS value").write.text(folder)
        is_seen = any(files_at(folder, lake).listed(folder))
    finally:
        files_at(folder, lake).remove(folder)
    if not is_seen:
        raise SparkUnavailable(
            f"the server {lake_master(lake)} wrote a file to {folder}, and this machine does not see it: "
            "it is not the same folder on both",
            remedy="Mount it on both, or put the lake into an object store; nothing was claimed.",
        )


def _check_log_store(lake: Lake, spark: SparkSession) -> None:
    """Raise an error if two drivers on the server would replace each other's commits in an object store."""
    root = lake.settings.root_folder
    if not is_stored(root) or lake.storage.settings.single_driver:
        return
    scheme, kind = root.partition("://")[0], lake.storage.kind(root)
    found = spark.conf.get(f"spark.delta.logStore.{scheme}.impl", "") or kind.default_log_store
    if found.endswith("SingleDriverLogStore"):
        raise SpecError.of(
            f"the server commits to {scheme}:// by {found}, and two drivers lose commits",
            remedy=f"Start it with {kind.log_store} or Delta's log store for DynamoDB "
            f"(spark.delta.logStore.{scheme}.impl), or, if nothing else writes to the lake, declare "
            "`storage: {single_driver: true}`.",
        )


def _check_default_system(lake: Lake, spark: SparkSession) -> None:
    """Raise an error if Spark would look for the lake's local folder in another file system."""
    root = lake.settings.root_folder
    jvm = jvm_of(spark)
    default = str((jvm and jvm.hadoop.get("fs.defaultFS")) or "file:///")
    if root.startswith("/") and not default.startswith("file:"):
        raise SpecError.of(
            f"the lake is at {root}, which Spark looks for in {default}, the cluster's default file system",
            remedy=f"Write root_folder: {default.rstrip('/')}{root}, or file://{root} for a folder that all "
            "machines share.",
        )


def _ask_executors(lake: Lake, spark: SparkSession) -> list[ExecutorFacts]:
    """Return what the executors say, written to the lake by them, and read again by others of them."""
    folder = join(lake.settings.root_folder, FOLDER, f"cluster-{uuid4()}")
    tasks = min(max(spark.sparkContext.defaultParallelism, 2), MOST_TASKS)
    frame = spark.range(0, tasks, 1, tasks).selectExpr(f"{executor_facts_sql()} AS value")
    try:
        with cancelled_without_executors(lake, spark):
            frame.write.text(folder)
            lines = [str(row.value) for row in spark.read.text(folder).collect()]
    finally:
        files_at(folder, lake).remove(folder)
    if len(lines) < tasks:
        raise SparkUnavailable(
            f"executors wrote {tasks - len(lines)} of {tasks} files to {folder}, and this machine does not "
            "see them: it is not the same folder on all machines of the cluster",
            remedy="Mount it on all of them, or put the lake into an object store; nothing was claimed.",
        )
    return [ExecutorFacts.read(line) for line in lines]


@contextmanager
def cancelled_without_executors(lake: Lake, spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs of the block if there is still no executor when the patience is over."""
    context, patience, jvm = spark.sparkContext, lake.session.patience, jvm_of(spark)
    tag = f"lakewright cluster {uuid4()}"
    late = threading.Event()

    def give_up() -> None:
        if jvm is not None and not jvm.executors:
            late.set()
            context.cancelJobsWithTag(tag)

    timer = threading.Timer(patience, give_up)
    timer.daemon = True
    context.addJobTag(tag)
    timer.start()
    try:
        yield
    except Exception as error:
        if is_jvm_failure(error) or isinstance(error, LakewrightError):
            raise
        raise _refusal(str(context.master), error, patience if late.is_set() else None) from error
    finally:
        timer.cancel()
        context.removeJobTag(tag)


def _refusal(master: str, error: Exception, patience: float | None) -> SparkUnavailable:
    if patience is not None:
        return SparkUnavailable(
            f"the cluster {master} gave no executor within {patience:.0f} s",
            remedy="Check that its workers have free cores and memory (config: spark.executor.memory, "
            "spark.cores.max), or wait longer: `cluster: {timeout: 10m}`; nothing was claimed.",
        )
    text = str(causes_of(error)[-1]).partition("\n")[0]
    return SparkUnavailable(
        f"the executors of {master} can't do the work: {text}",
        remedy="Check that they have the driver's version of Spark, and reach the driver "
        "(spark.driver.host) and the lake; nothing was claimed.",
    )


_PYTHON = "Python"
"""Among what was checked: that the executors run Python, which costs a job."""

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
    master = lake_master(lake)
    if not is_cluster(master) or is_connect(master):  # a server names another version itself
        return
    context = frame.sparkSession.sparkContext
    if _PYTHON in _passed.get(context, ()) or not runs_python(frame):
        return
    tasks = min(max(context.defaultParallelism, 2), MOST_TASKS)
    with cancelled_without_executors(lake, frame.sparkSession):
        try:
            context.parallelize(range(tasks), tasks).foreach(lambda _: None)
        except Exception as error:
            refusal = _python_refusal(full_text(error), what)
            if refusal is None:
                raise
            raise refusal from error
    _passed.setdefault(context, set()).add(_PYTHON)


def runs_python(frame: DataFrame) -> bool:
    """Return whether the executors run Python for a frame."""
    return _has_node(frame, _is_python)


def has_python_functions(frame: DataFrame) -> bool:
    """Return whether a frame calls Python functions, which compute with times of its session's zone.

    Rows that came from Python, as those of `createDataFrame`, are none: Spark has them in its own form, in
    which times are instants.
    """
    return _has_node(frame, _is_function)


def _has_node(frame: DataFrame, is_wanted: Callable[[Any], bool]) -> bool:
    """Return whether a frame has a Python function in an expression, or a node that is wanted."""
    jvm = jvm_of(frame)
    if jvm is None:
        return False
    plans = analyzed_plans(jvm, frame)
    if plans[0].containsPattern(jvm.packages.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()):
        return True
    return any(is_wanted(node) for each in plans for node in nodes_of(each))


def _is_python(node: Any) -> bool:
    """Return whether a node calls a table function, reads a data source or an RDD that is in Python."""
    # The lineage names the class of each RDD.
    is_rdd = kind_of(node) == "LogicalRDD"
    return _is_function(node) or (is_rdd and "PythonRDD" in str(node.rdd().toDebugString()))


def _is_function(node: Any) -> bool:
    """Return whether a node calls a table function, or reads a data source, that is in Python."""
    kind = kind_of(node)
    if kind == "Generate":
        return kind_of(node.generator()) == "PythonUDTF"
    return kind == "DataSourceV2Relation" and kind_of(node.table()) == "PythonTable"


def _python_refusal(text: str, what: str) -> SparkUnavailable | None:
    """Return the error for what Spark says of a Python that can't work, or None for another failure."""
    if (versions := _OTHER_VERSION.search(text)) is not None:
        reason = f"executors have Python {versions[1]}, the driver has {versions[2]}"
    elif (program := _NO_PROGRAM.search(text)) is not None:
        reason = f"executors have no Python at {program[1]}"
    else:
        return None
    return SparkUnavailable(f"{what} can't run its Python functions: {reason}", remedy=_REMEDY)
