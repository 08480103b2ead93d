"""A server of Spark Connect that has gone is told from work that failed, as a JVM is."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from lakewright.errors import JvmEnded
from lakewright.spark.jvm import is_jvm_failure, jvm_failure


class RetriesExceeded(PySparkException):
    """As PySpark's, which needs gRPC."""


class SparkConnectGrpcException(PySparkException):
    """As PySpark's."""


class OfCondition(PySparkException):
    """An error of Spark with a condition."""

    def __init__(self, condition: str) -> None:
        super().__init__(message="that failed")
        self.condition = condition

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        return self.condition


GONE = [
    RetriesExceeded("[RETRIES_EXCEEDED] The maximum number of retries has been exceeded."),
    SparkConnectGrpcException("status = StatusCode.UNAVAILABLE, details = Connection refused"),
    OfCondition("INVALID_HANDLE.SESSION_CHANGED"),
]


@pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
def test_work_on_a_server_that_has_gone_is_released(error: Exception) -> None:
    assert is_jvm_failure(error)
    assert isinstance(jvm_failure("orders", error), JvmEnded)


@pytest.mark.parametrize(
    "error",
    [
        SparkConnectGrpcException("[DIVIDE_BY_ZERO] Division by zero"),
        OfCondition("CAST_INVALID_INPUT"),
        ValueError("StatusCode.UNAVAILABLE"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_work_that_failed_is_not(error: Exception) -> None:
    assert not is_jvm_failure(error)
