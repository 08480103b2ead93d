"""Imports the modules of the engine in one thread, before several threads use them."""

from __future__ import annotations

from importlib import import_module

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
