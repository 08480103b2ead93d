"""Whether an error came of the JVM that Spark runs in, not of what it was asked to do.

A JVM that ends takes a moment for it, in which it still answers: that a job was cancelled, that a task had no
memory, or that Spark has a bug, as what was stopped already is missing.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator

from lakewright.errors import TargetError

__all__ = ["full_text", "is_jvm_failure", "jvm_failure"]

_OUT_OF_MEMORY = re.compile(
    # At the beginning of what a JVM or a task says: a value of a column may hold the same words.
    r"^(?:Caused by: |: |[^'\"\n]*\([^()\n]* executor [^)\n]*\): )?"
    r"(?:java\.lang\.|org\.apache\.spark\.memory\.Spark)OutOfMemoryError\b",
    re.MULTILINE,
)
_EXIT_CODES_OUT_OF_MEMORY = (52, 3)
"""Exit codes of a JVM without memory: Spark's own, and that of `-XX:+ExitOnOutOfMemoryError`."""

_SECONDS_TO_CLOSE = 1
"""Its connections are closed this long before it has ended."""

_SECONDS_TO_END = 20
"""Its context is stopped this long before it has ended."""


def full_text(error: BaseException) -> str:
    """Return all that an error says, with what the JVM says about its causes."""
    try:
        said = str(error)
    except Exception as failure:  # Py4J asks the JVM, which may have ended
        said = f"{type(error).__name__}: {failure}"
    stack = getattr(error, "_stackTrace", None)
    return f"{said}\n{stack}" if isinstance(stack, str) else said


def is_jvm_failure(error: BaseException) -> bool:
    """Return whether an error was met because the JVM has ended, is about to, or has no memory.

    Whatever is met once it has ended comes of that: Py4J then also says that classes don't exist.
    """
    is_starved = _is_out_of_memory(error)
    patience = 0
    if is_starved or _is_stopped():
        patience = _SECONDS_TO_END
    elif any(map(_is_of_connection, _chain(error))):
        patience = _SECONDS_TO_CLOSE
    return _has_ended(patience) or is_starved


def jvm_failure(what: str, error: BaseException) -> TargetError:
    """Return the error that `what` ends with where `error` is a failure of the JVM."""
    again = "Run again: what was not committed is done then."
    process = _process()
    code = None if process is None else process.poll()
    if code in _EXIT_CODES_OUT_OF_MEMORY or _is_out_of_memory(error):
        return TargetError(
            f"{what}: Spark's JVM ran out of memory",
            remedy=f"Give it more, as in `config: {{spark.driver.memory: 8g}}`. {again}",
        )
    return TargetError(
        f"{what}: Spark's JVM {'was killed' if code == -signal.SIGKILL else 'has ended'}",
        remedy="See whether somebody killed it, or the machine ran out of memory: `dmesg` tells; config: "
        f"spark.driver.memory sets how much it uses. {again}",
    )


def _is_out_of_memory(error: BaseException) -> bool:
    return any(_OUT_OF_MEMORY.search(full_text(each)) for each in _chain(error))


def _is_of_connection(error: BaseException) -> bool:
    return isinstance(error, ConnectionError) or any(
        kind.__name__ == "Py4JNetworkError" for kind in type(error).__mro__
    )


def _is_stopped() -> bool:
    """Whether the JVM says no more that its context goes on, which nobody here has stopped."""
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.SparkContext._active_spark_context
    try:
        return context is not None and bool(context._jsc.sc().isStopped())
    except Exception:  # it answers no more
        return True


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it, each once: an error may have been raised from itself."""
    met: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in met:
        met.add(id(each))
        yield each
        each = each.__cause__ or each.__context__


def _process() -> subprocess.Popen[bytes] | None:
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else getattr(pyspark.SparkContext._gateway, "proc", None)


def _has_ended(patience: float) -> bool:
    process = _process()
    try:
        return process is not None and process.wait(patience) is not None
    except subprocess.TimeoutExpired:
        return False
