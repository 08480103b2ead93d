"""Failures of the JVM that Spark runs in, distinguished from failures of the work itself.

A JVM that is about to exit still answers for a moment: that a job was cancelled, that a task was out of
memory, or that Spark has a bug because parts of it have stopped already.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

from lakewright.errors import JvmEnded
from lakewright.spark.engine import is_of_connect

_OUT_OF_MEMORY = re.compile(
    # Only at the beginning of a message of a JVM or a task: a column's value may hold the same words.
    r"^(?:Caused by: |: |[^'\"\n]*\([^()\n]* executor [^)\n]*\): )?"
    r"(?:java\.lang\.|org\.apache\.spark\.memory\.Spark)OutOfMemoryError\b",
    re.MULTILINE,
)
_STOPPED = re.compile(
    r"SparkContext (?:was|has been) shut ?down|stopped SparkContext|'NoneType' object has no attribute "
    r"'(?:sc|\w*JobTag\w*|\w*LocalProperty|hadoopConfiguration)'"
)
"""What Spark and PySpark say of work with a context that somebody has stopped."""

_UNREACHABLE = re.compile(r"\bUNAVAILABLE\b|Cannot invoke RPC|channel is closed")
"""What gRPC says of a connection to a server that has gone."""

_EXIT_CODES_OUT_OF_MEMORY = (52, 3)
"""Exit codes of a JVM that is out of memory: Spark's own, and that of `-XX:+ExitOnOutOfMemoryError`."""

_SECONDS_TO_CLOSE = 1
"""Seconds to wait for the exit of a JVM whose connection is closed."""

_POLL_SECONDS = 0.05

_SECONDS_TO_END = 20
"""Seconds to wait for the exit of a JVM whose Spark context is stopped."""


def full_text(error: BaseException) -> str:
    """Return the text of an error, followed by the JVM's stack trace with its causes."""
    try:
        said = str(error)
    except Exception as failure:  # Py4J asks the JVM for the text, which may have exited
        said = f"{type(error).__name__}: {failure}"
    # So PySpark calls it in its errors of a JVM, and of a server of Spark Connect.
    stack = getattr(error, "_stackTrace", None) or getattr(error, "_stacktrace", None)
    return f"{said}\n{stack}" if isinstance(stack, str) and stack not in said else said


def is_jvm_failure(error: BaseException) -> bool:
    """Return whether an error occurred because the JVM has exited, is about to, or is out of memory.

    Every error after its exit counts: Py4J then also reports that classes don't exist. So does an error of
    work whose session was stopped in this process, although the JVM goes on.
    """
    if _was_stopped(error) or _has_lost_server(error):
        return True
    is_out_of_memory, is_stopped = _is_out_of_memory(error), _is_stopped()
    patience = 0
    if is_out_of_memory or is_stopped:
        patience = _SECONDS_TO_END
    elif any(map(_is_connection_error, _chain(error))):
        patience = _SECONDS_TO_CLOSE
    return _has_ended(patience, is_stopped=is_stopped) or is_out_of_memory or is_stopped


def jvm_failure(what: str, error: BaseException) -> JvmEnded:
    """Return Lakewright's error for work that failed with `error`, a failure of the JVM."""
    again = "Run again: the next run does what was not committed."
    if _has_lost_server(error):
        return JvmEnded(
            f"{what}: the server of Spark Connect has ended, or has given up the session",
            remedy=f"Check that it runs, and that it has memory. {again}",
        )
    process = _process()
    code = None if process is None else process.poll()
    if _was_stopped(error) or (code is None and _is_stopped()):
        return JvmEnded(
            f"{what}: the Spark session was stopped meanwhile",
            remedy=f"Start a session, and load the project with it; without one, it starts its own. {again}",
        )
    if code in _EXIT_CODES_OUT_OF_MEMORY or _is_out_of_memory(error):
        return JvmEnded(
            f"{what}: Spark's JVM ran out of memory",
            remedy=f"Give it more memory, for example `config: {{spark.driver.memory: 8g}}`. {again}",
            details={"memory": True},
        )
    return JvmEnded(
        f"{what}: Spark's JVM {'was killed' if code == -signal.SIGKILL else 'has ended'}",
        remedy="Check whether somebody killed it, or the machine ran out of memory (see `dmesg`); config: "
        f"spark.driver.memory sets how much it uses. {again}",
    )


def _has_lost_server(error: BaseException) -> bool:
    """Return whether a server of Spark Connect does not answer, or has given up the session."""
    for each in _chain(error):
        names = {kind.__name__ for kind in type(each).__mro__}
        condition = each.getCondition() if "PySparkException" in names else None  # type: ignore[attr-defined]
        if "RetriesExceeded" in names or str(condition).startswith("INVALID_HANDLE.SESSION"):
            return True
        if "SparkConnectGrpcException" in names and _UNREACHABLE.search(full_text(each)):
            return True
    return False


def _is_out_of_memory(error: BaseException) -> bool:
    return any(_OUT_OF_MEMORY.search(full_text(each)) for each in _chain(error))


def has_stopped(session: Any) -> bool:
    """Return whether a session, or its context, was stopped in this process; nothing else is asked."""
    if is_of_connect(session):
        return bool(session.is_stopped)
    context = getattr(session, "sparkContext", None)
    return context is not None and context._jsc is None


def _was_stopped(error: BaseException) -> bool:
    """Return whether an error is of work whose Spark context was stopped in this process.

    Whatever Spark says then follows from that.
    """
    if _context_class() is None or not _is_without_context():
        return False
    return any(_is_sparks(each) or _STOPPED.search(full_text(each)) for each in _chain(error))


def _is_sparks(error: BaseException) -> bool:
    """Return whether an error is one of PySpark or Py4J, not of a lost connection."""
    package = type(error).__module__.partition(".")[0]
    return package in ("py4j", "pyspark") and not _is_connection_error(error)


def _is_connection_error(error: BaseException) -> bool:
    return isinstance(error, ConnectionError) or any(
        kind.__name__ == "Py4JNetworkError" for kind in type(error).__mro__
    )


def _is_stopped() -> bool:
    """Return whether the JVM's Spark context is stopped, although this process didn't stop it."""
    context = active_context()
    try:
        return context is not None and bool(context._jsc.sc().isStopped())
    except Exception:  # it no longer answers
        return True


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, each once: an error may have been raised from itself."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__


def _process() -> subprocess.Popen[bytes] | None:
    return getattr(getattr(_context_class(), "_gateway", None), "proc", None)


def _has_ended(patience: float, *, is_stopped: bool) -> bool:
    """Return whether the JVM has ended after a wait, which is over once its context was stopped alone."""
    process = _process()
    if process is None:
        return False
    end = monotonic() + patience
    while process.poll() is None:
        if monotonic() >= end or (is_stopped and _is_without_context()):
            return False
        sleep(min(_POLL_SECONDS, patience))
    return True


def _is_without_context() -> bool:
    return active_context() is None


def active_context() -> Any:
    """Return the Spark context of this process, if it has one."""
    return getattr(_context_class(), "_active_spark_context", None)


def active_packages() -> Any:
    """Return the root of the packages of this process's JVM; None if it runs no Spark."""
    context = active_context()
    return None if context is None else context._jvm


def _context_class() -> Any:
    """Return PySpark's class of contexts; None before it is imported, and in its client for Spark Connect."""
    return getattr(sys.modules.get("pyspark"), "SparkContext", None)
