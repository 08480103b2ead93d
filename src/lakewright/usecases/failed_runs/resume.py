"""The commands that do again what a failed run left undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors.phrase import Command, Placeholder
from lakewright.manifest.item import Item
from lakewright.manifest.journal import Run
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_entry_undone
from lakewright.usecases.failed_runs.undone_runs import hidden_parameters

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = [
    "failed_items",
    "is_resumable",
    "is_rewind",
    "resume_command",
]

REWINDS = ("UNDO", "REBUILD")
"""The phases under which the history lists undos and rebuilds, whose runs are named after their entities."""


def failed_items(app: App, run: Run) -> list[Item]:
    """Return the items because of whose failures a run ended, as far as these still wait for somebody."""
    undone = (each for each in app.journal.targets(run.run_id) if is_entry_undone(each))
    ids = dict.fromkeys(item for each in undone for item in each.get(FAILED_ITEMS, ()))
    return [item for item in app.store.read(list(ids)).values() if item.failed is not None]


def is_rewind(run: Run) -> bool:
    """Return whether a run is an undo or a rebuild, which the history lists beside those of jobs."""
    return run.phase in REWINDS


def is_resumable(run: Run) -> bool:
    """Return whether a page may offer to resume a run: not one that rewinds or removes tables."""
    return not is_rewind(run) and run.phase not in (Phase.TRUNCATE, Phase.DESTROY)


def resume_command(run: Run) -> Command:
    """Return the command that resumes a run, of the targets that it was restricted to.

    A secret value becomes `<name>`, which no shell accepts.
    """
    return _rewind_command(run) if is_rewind(run) else _job_command(run, "--resume")


def _job_command(run: Run, *options: str) -> Command:
    """Return the command that runs the job of a run again, with further options."""
    hidden = hidden_parameters(run)
    arguments = [
        Placeholder(f"{name}=<{name}>") if name in hidden else argument
        for name, argument in zip(run.parameters, run.arguments, strict=True)
    ]
    return Command(
        *("job", run.job, run.phase.lower(), *_choice(run)),
        *arguments,
        *options,
        *(["--yes"] if run.phase in (Phase.TRUNCATE, Phase.DESTROY) else []),
    )


def _choice(run: Run) -> tuple[str, ...]:
    """Return the options by which a run left out targets or phases."""
    chosen = tuple(option for name in run.facts.get("targets") or () for option in ("-t", str(name)))
    return ("-nl", *chosen) if run.facts.get("no_lifecycle") else chosen


def _rewind_command(run: Run) -> Command:
    """Return the command that does an undo or a rebuild again; it continues one that was interrupted."""
    facts = run.facts
    flags = [f"--{flag}" for flag in ("requeue", "check") if facts.get(flag)]
    started = [f"--{name}={facts[name]}" for name in ("from", "from-time") if facts.get(name)]
    started += [word for name in facts.get("include") or () for word in ("--include", str(name))]
    names = [run.phase.lower(), run.job.partition(" ")[2], *([facts["slice"]] if facts.get("slice") else [])]
    return Command(*map(str, names), *started, *flags)
