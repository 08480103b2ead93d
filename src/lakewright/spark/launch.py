"""The start of the engine in this process: its modules, its environment, and how to end a JVM that starts."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


_MARK = "pyspark-shell"
"""The argument with which PySpark launches the JVM of a Python process."""

MODULES = (
    "pyspark.sql",
    "pyspark.sql.functions",
    "pyspark.sql.types",
    "pyspark.errors",
    "py4j.protocol",
    "deltalake",
    "deltalake.exceptions",
    "sqlalchemy",
)
"""Packages whose modules import each other in cycles, and which Lakewright imports where it uses them.

Python resolves a deadlock between two threads that import such a package by giving one of them a module that
is only partly initialized.
"""


def import_engine() -> None:
    """Import what is installed of the engine; what is missing fails where it is used, and says so there."""
    for name in MODULES:
        try:
            import_module(name)
        except ImportError:
            continue


def has_jvm() -> bool:
    """Return whether this process has a JVM, which may hold the metastore open from an earlier session."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._gateway is not None


def launched_jvms() -> frozenset[int]:
    """Return the process ids of the JVMs that PySpark has launched as children of this process."""
    return frozenset(child.pid for child in _jvms())


def end_launched_jvm(others: Container[int]) -> None:
    """Kill the JVM that PySpark is launching as a child of this process; PySpark's call then fails.

    Args:
        others: Process ids of JVMs that were there before, which are kept.
    """
    import psutil

    for child in _jvms():
        if child.pid not in others:
            with suppress(psutil.Error):
                child.kill()


def _jvms() -> Iterator[psutil.Process]:
    import psutil

    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if _MARK in child.cmdline():
                yield child


def forget_jvm() -> None:
    """Make PySpark launch another JVM next time, instead of calling the one that was ended."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None:
        pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None


@contextmanager
def environment_set(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for what is started or imported in the block, and restore them afterwards."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Restore the caller's handler of Ctrl-C, which PySpark replaces by one that cancels all jobs.

    PySpark's handler stays if Python's default was set before: an interrupted call must not leave its job
    running.
    """
    before = signal.getsignal(signal.SIGINT)
    yield
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and before is not signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
