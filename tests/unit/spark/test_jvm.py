"""Errors that come of the JVM, told from those of what it was asked to do; no JVM.

A process of Python stands for it, which runs, has ended, or is about to.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from lakewright.spark.jvm import full_text, is_jvm_failure, jvm_failure

Jvm = Callable[..., "subprocess.Popen[bytes] | None"]

NO_MEMORY = "java.lang.OutOfMemoryError: Java heap space"
RUNNING = "input()"
ENDING = "import sys, time; time.sleep(0.3); sys.exit(52)"


def caused_by_itself(error: Exception) -> Exception:
    error.__cause__ = error
    return error


def caused_by(cause: Exception) -> Exception:
    error = RuntimeError("the job was lost")
    error.__cause__ = cause
    return error


def captured(said: str, stack: str) -> Exception:
    """An error as PySpark raises it, with what the JVM says of its causes beside it."""
    error = RuntimeError(said)
    error._stackTrace = stack  # type: ignore[attr-defined]
    return error


class OfPySpark(Exception):
    """An error of PySpark."""

    __module__ = "pyspark.errors"


class Unreadable(Exception):
    """Py4J asks the JVM for the text of its errors."""

    def __str__(self) -> str:
        raise ConnectionRefusedError("refused")


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jvm]:
    """Puts a process, which runs some code, in the place of the JVM; none for a session elsewhere."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(code: str | None, context: object = None) -> subprocess.Popen[bytes] | None:
        process = None
        if code is not None:
            process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
            processes.append(process)
        gateway = None if process is None else SimpleNamespace(proc=process)
        pyspark = SimpleNamespace(
            SparkContext=SimpleNamespace(_gateway=gateway, _active_spark_context=context)
        )
        monkeypatch.setitem(sys.modules, "pyspark", pyspark)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError("refused"),
        caused_by(ConnectionResetError("reset")),
        caused_by_itself(ConnectionResetError("reset")),
        ValueError("functions does not exist in the JVM"),
        Unreadable(),
    ],
)
def test_what_is_met_once_the_jvm_has_ended_comes_of_that(jvm: Jvm, error: Exception) -> None:
    process = jvm("")
    assert process is not None
    process.wait()
    assert is_jvm_failure(error)
    assert "has ended" in jvm_failure("s1", error).message


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("org.apache.spark.SparkException: Job 7 cancelled because SparkContext was shut down"),
        caused_by(
            RuntimeError("java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.")
        ),
        AttributeError("'NoneType' object has no attribute 'removeJobTag'"),
        caused_by(OfPySpark("[INTERNAL_ERROR] No active or default Spark session found")),
    ],
)
def test_a_session_that_was_stopped_in_the_process_is_none_of_the_slices_fault(
    jvm: Jvm, error: Exception
) -> None:
    jvm(RUNNING)
    assert is_jvm_failure(error)
    failure = jvm_failure("s1", error)
    assert failure.message == "s1: the Spark session was stopped meanwhile"
    assert "Start a session, and load the project with it" in str(failure.remedy)
    jvm(RUNNING, context(is_stopped=False))
    assert not is_jvm_failure(error)


@pytest.mark.parametrize("code", [RUNNING, None])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        caused_by_itself(ValueError("wrong")),
        captured(f"[CAST_INVALID_INPUT] The value '{NO_MEMORY}' can't be cast", "at org.apache.spark"),
    ],
)
def test_while_it_runs_errors_are_of_what_was_asked(jvm: Jvm, code: str | None, error: Exception) -> None:
    jvm(code, context(is_stopped=False))
    assert not is_jvm_failure(error)


def test_a_connection_that_fails_while_it_runs_is_another(jvm: Jvm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewright.spark.jvm._SECONDS_TO_CLOSE", 0.1)
    jvm(RUNNING)
    assert not is_jvm_failure(ConnectionRefusedError("refused"))


def context(*, is_stopped: bool) -> object:
    scala = SimpleNamespace(isStopped=lambda: is_stopped)
    return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala))


def silent() -> object:
    """The context of a JVM that answers no more."""
    raise ConnectionRefusedError("refused")


@pytest.mark.parametrize(
    ("error", "is_stopped"),
    [
        (RuntimeError("Job 3 cancelled because SparkContext was shut down"), True),
        (RuntimeError("[INTERNAL_ERROR] You hit a bug in Spark"), True),
        (ConnectionResetError("reset"), False),
        (captured("[TASK_WRITE_FAILED] Task failed.", f"at org.apache.spark\nCaused by: {NO_MEMORY}"), False),
    ],
)
def test_one_that_is_about_to_end_is_waited_for(jvm: Jvm, error: Exception, is_stopped: bool) -> None:
    jvm(ENDING, context(is_stopped=is_stopped))
    assert is_jvm_failure(error)
    assert "ran out of memory" in jvm_failure("s1", error).message


def test_one_that_answers_no_more_is_waited_for(jvm: Jvm) -> None:
    jvm(ENDING, SimpleNamespace(_jsc=SimpleNamespace(sc=silent)))
    assert is_jvm_failure(Unreadable())


@pytest.mark.parametrize("code", [RUNNING, None])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(f"An error occurred while calling o39.parquet.\n: {NO_MEMORY}"),
        RuntimeError(f"Lost task 0.0 in stage 0.0 (TID 0) (10.0.0.2 executor driver): {NO_MEMORY}"),
        caused_by(captured("[TASK_WRITE_FAILED] Task failed.", f"at x\nCaused by: {NO_MEMORY}")),
        captured("no", "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] …"),
    ],
)
def test_one_without_memory_that_goes_on_is_none_of_the_slices_fault(
    jvm: Jvm, monkeypatch: pytest.MonkeyPatch, code: str | None, error: Exception
) -> None:
    monkeypatch.setattr("lakewright.spark.jvm._SECONDS_TO_END", 0)
    jvm(code)
    assert is_jvm_failure(error)
    failure = jvm_failure("s1", error)
    assert failure.message == "s1: Spark's JVM ran out of memory"
    assert "spark.driver.memory" in str(failure.remedy)


def test_an_error_that_can_no_longer_be_read_is_named() -> None:
    assert full_text(Unreadable()) == "Unreadable: refused"
