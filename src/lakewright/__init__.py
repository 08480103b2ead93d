"""Lakewright builds and maintains a data lake that a project declares in YAML and JSON.

These modules are public. A change to what they offer has a line in `CHANGELOG.md`:

- `lakewright`: `Processing`, `Project`
- `lakewright.errors`: every error that Lakewright raises, `Fault`, `Location`
- `lakewright.testing`: `MemoryStore`

All other modules are internal and may change without notice.

Importing `lakewright` is cheap: Spark, pydantic and database drivers are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakewright.api import Processing, Project

__all__ = ["Processing", "Project"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("lakewright.api"), name)
    raise AttributeError(f"module 'lakewright' has no attribute {name!r}")
