"""The last run and how its targets ended, from the run history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakewright.documentation.document import Ending, LastRun
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.record import format_instant

if TYPE_CHECKING:
    from lakewright.manifest.store import Store

__all__ = ["endings_of", "last_run_of"]


def last_run_of(run: Run) -> LastRun:
    """Return a run as the documentation shows it."""
    return LastRun(
        run_id=run.run_id,
        job=run.job,
        phase=run.phase,
        status=run.status,
        started=format_instant(run.started),
        finished=format_instant(run.finished) if run.finished else None,
        parameters={name: str(value) for name, value in run.parameters.items()},
    )


def endings_of(run: Run, store: Store, parameters: Mapping[str, str]) -> dict[str, tuple[Ending, ...]]:
    """Return how each target ended in each phase of a run, by the target's name.

    Args:
        run: The run.
        store: The store that holds its history.
        parameters: Of a run with several instances, the one to prefer; without any, the last one counts.
    """
    found: dict[str, dict[str, Ending]] = {}
    for entry in Journal(store).targets(run.run_id):
        is_other = bool(parameters) and dict(entry["instance"]) != dict(parameters)
        phases = found.setdefault(entry["name"], {})
        if is_other and entry["phase"] in phases:
            continue
        error = entry.get("error") or {}
        phases[entry["phase"]] = Ending(
            phase=entry["phase"],
            status=entry["status"],
            reasons=tuple(entry["reasons"]),
            seconds=float(entry["seconds"]),
            error=error.get("message"),
        )
    return {name: tuple(phases.values()) for name, phases in found.items()}
