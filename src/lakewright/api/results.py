"""The history of runs as a value that a notebook shows as a table."""

from __future__ import annotations

from lakewright.manifest.journal import Run
from lakewright.notebook import html_table

__all__ = ["Runs"]


class Runs(tuple[Run, ...]):
    """Runs of jobs, newest first."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        rows = (
            (
                run.job,
                run.phase.lower(),
                " ".join(f"{name}={value}" for name, value in run.parameters.items()),
                run.status,
                f"{run.started:%Y-%m-%d %H:%M:%S}",
                run.run_id,
            )
            for run in self
        )
        return html_table("Runs", ("job", "phase", "parameters", "status", "started", "run"), rows)
