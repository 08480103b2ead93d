"""Lakewright builds and keeps a data lake that a project declares in YAML and JSON.

`Project` and `Processing` are what Python code starts with; errors are in `lakewright.errors`. Importing the
package is cheap: nothing of Spark, pydantic or a database is loaded before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakewright.api import Processing, Project

__all__ = ["Processing", "Project"]


def __getattr__(name: str) -> Any:
    if name in {"Processing", "Project"}:
        return getattr(import_module("lakewright.api"), name)
    raise AttributeError(f"module 'lakewright' has no attribute {name!r}")
