"""The command line in a worker of the server, whose modules its host has imported."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from lakewright.cli import entry
from lakewright.spark.imports import import_engine

if TYPE_CHECKING:
    from lakewright.spark.session import Sessions

__all__ = ["preload", "run"]

MODULES = (
    "lakewright.app",
    "lakewright.run.execute",
    "pandas",
    "pyspark.testing",
    "rich.live",
)
"""What commands import when they need it, besides their own modules and the engine."""


def run(arguments: Sequence[str], sessions: Sessions) -> int:
    """Run a command line on these sessions and return its exit code."""
    return entry.main(arguments, sessions=sessions)


def preload() -> None:
    """Import what commands import, and start no thread."""
    for path, _ in entry.COMMANDS.values():
        import_module(path.partition(":")[0])
    import_engine()
    for name in MODULES:
        with suppress(ImportError):
            import_module(name)
