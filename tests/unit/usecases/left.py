"""What runs have left to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.app import App
from lakewright.manifest.journal import Run
from lakewright.usecases.failed_runs.undone_runs import runs_to_resume
from lakewright.usecases.staleness.brought_back import brought_back
from lakewright.usecases.staleness.earlier_builds import former_names

__all__ = ["tainted", "undone"]


def undone(app: App) -> tuple[Run, ...]:
    """Return the failed runs that nothing has made good."""
    return tuple(runs_to_resume(app, tuple(app.journal.runs())))


def tainted(app: App) -> list[tuple[str, tuple[Mapping[str, Any], ...]]]:
    """Return the declared targets that are to be built again, with their instances."""
    back = {each.place.key for each in brought_back(app)}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in former_names(app).taints():
        if each.place.key not in back and each.place.target in app.project.targets:
            found.setdefault(each.place.target, []).append(dict(each.place.parameters))
    return sorted((name, tuple(sorted(own, key=str))) for name, own in found.items())
