"""Whether the executors of a cluster can run a project's Python functions; no JVM.

Source: the rules of storage and clusters, "2. Clusters": versions fit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.sessions import no_session

from lakewright.errors import SparkUnavailable
from lakewright.lake import cluster
from lakewright.lake.cluster import check_python
from lakewright.lake.lake import Lake
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings

OTHER_VERSION = (
    "org.apache.spark.api.python.PythonException: pyspark.errors.exceptions.base.PySparkRuntimeError: "
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, "
    "PySpark cannot run with different minor versions."
)
NO_PROGRAM = 'java.io.IOException: Cannot run program "/opt/driver/bin/python": error=2, No such file'


class FakeContext:
    """A context of a cluster whose executors fail with an error, or not."""

    defaultParallelism = 3  # noqa: N815 - Spark's name

    def __init__(self, error: str = "") -> None:
        self.asked: list[int] = []
        self.error = error

    def parallelize(self, numbers: range, tasks: int) -> Any:
        assert len(numbers) == tasks
        self.asked.append(tasks)
        return SimpleNamespace(foreach=self._run)

    def _run(self, function: Callable[[int], None]) -> None:
        if self.error:
            raise RuntimeError(self.error)
        function(0)


@pytest.fixture
def frame(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(cluster, "runs_python", lambda frame: frame.runs_python)
    monkeypatch.setattr(cluster, "cancelled_without_executors", lambda *_: nullcontext())

    def make(context: FakeContext, *, runs_python: bool = True) -> Any:
        session = SimpleNamespace(sparkContext=context)
        return SimpleNamespace(sparkSession=session, runs_python=runs_python)

    return make


def lake(master: str = "spark://host:7077") -> Lake:
    settings = SessionSettings(Path("/state"), master=master)
    return Lake(LakeSettings(root_folder="s3://b/lake"), settings, sessions=no_session)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OTHER_VERSION, "executors have Python 3.12, the driver has 3.11"),
        (NO_PROGRAM, "executors have no Python at /opt/driver/bin/python"),
    ],
)
def test_a_frame_with_python_functions_is_refused_if_executors_have_another_python(
    frame: Callable[..., Any], error: str, told: str
) -> None:
    context = FakeContext(error)
    for _ in range(2):
        with pytest.raises(
            SparkUnavailable, match=f"mapping 'm' can't run its Python functions: {told}"
        ) as e:
            check_python(lake(), frame(context), "mapping 'm'")
        assert "PYSPARK_PYTHON" in str(e.value.remedy)
    assert context.asked == [3, 3], "what failed is asked again"


def test_another_failure_of_executors_is_not_blamed_on_python(frame: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="out of disk"):
        check_python(lake(), frame(FakeContext("out of disk")), "mapping 'm'")


def test_executors_are_asked_for_python_once_a_context_and_only_where_it_runs(
    frame: Callable[..., Any],
) -> None:
    context = FakeContext()
    check_python(lake(), frame(context, runs_python=False), "mapping 'm'")
    check_python(lake("local[4]"), frame(context), "mapping 'm'")
    assert context.asked == []
    check_python(lake(), frame(context), "mapping 'm'")
    check_python(lake(), frame(context), "mapping 'other'")
    assert context.asked == [3]
    check_python(lake(), frame(other := FakeContext()), "mapping 'm'")
    assert other.asked == [3]
