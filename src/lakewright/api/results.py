"""How a run ended, and the history of runs as a value that a notebook shows as a table."""

from __future__ import annotations

import logging

from lakewright.manifest.journal import Run
from lakewright.notebook import html_table
from lakewright.run.result import RunResult

__all__ = ["Runs", "tell_end"]

log = logging.getLogger("lakewright.run")

_INTERRUPTED = 130
"""The exit code of a run that Ctrl-C has ended."""


def tell_end(job: str, phase: str, result: RunResult) -> None:
    """Log how a run ended.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it.
    """
    log.info("%s %s: %s", job, phase, result.summary, extra={"run_id": result.run_id, "job": job})
    if result.exit_code == _INTERRUPTED:
        raise KeyboardInterrupt(f"run {result.run_id} of {job} was interrupted")


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
