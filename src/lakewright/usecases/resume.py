"""The command that does again what a failed run left undone."""

from __future__ import annotations

import shlex

from lakewright.manifest.journal import Run
from lakewright.manifest.redact import HIDDEN
from lakewright.plan.arguments import argument_text

__all__ = ["hidden_parameters", "is_rewind", "resume_command"]

REWINDS = ("UNDO", "REBUILD")
"""The phases under which the history lists undos and rebuilds, whose runs are named after their entities."""


def is_rewind(run: Run) -> bool:
    """Return whether a run is an undo or a rebuild, which the history lists beside those of jobs."""
    return run.phase in REWINDS


def resume_command(run: Run) -> str:
    """Return the command that resumes a run; a secret value becomes `<name>`, which no shell accepts."""
    if is_rewind(run):
        return _rewind_command(run)
    hidden = hidden_parameters(run)
    arguments = [
        f"{name}=<{name}>" if name in hidden else shlex.quote(argument_text(name, str(value)))
        for name, value in run.parameters.items()
    ]
    return " ".join(
        [*map(shlex.quote, ("lakewright", "job", run.job, run.phase.lower())), *arguments, "--resume"]
    )


def _rewind_command(run: Run) -> str:
    """Return the command that does an undo or a rebuild again; it continues one that was interrupted."""
    facts = run.facts
    flags = [f"--{flag}" for flag in ("requeue", "check") if facts.get(flag)]
    started = [f"--{name}={facts[name]}" for name in ("from", "from-time") if facts.get(name)]
    names = [run.phase.lower(), run.job.partition(" ")[2], *([facts["slice"]] if facts.get("slice") else [])]
    return shlex.join(["lakewright", *map(str, names), *started, *flags])


def hidden_parameters(run: Run) -> tuple[str, ...]:
    """Return the names of a run's parameters whose values are secret and were not recorded."""
    return tuple(name for name, value in run.parameters.items() if HIDDEN in str(value))
