"""Failed runs: what stands for them, and the command that runs what they have left undone.

What is due follows from the lake alone; this is for those who look at a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors.phrase import Command, Placeholder
from lakewright.manifest.journal import ABORTED
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.wants import read_wants
from lakewright.spec.expressions.secrets import HIDDEN

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.manifest.journal import Run
    from lakewright.spec.project import Project

__all__ = [
    "failed_items",
    "is_of_former_job",
    "is_resumable",
    "is_rewind",
    "is_superseded",
    "resume_command",
]

REWINDS = ("UNDO", "REBUILD")
"""The phases under which the history lists undos and rebuilds, whose runs are named after their entities."""

_FAILED = (Status.FAILED.value, Status.BLOCKED.value, ABORTED)


def failed_items(app: App, run: Run) -> list[Item]:
    """Return the items because of whose failures a run ended, as far as these still wait for somebody."""
    found = (item for each in app.journal.targets(run.run_id) for item in each.get(FAILED_ITEMS, ()))
    return [item for item in app.store.read(list(dict.fromkeys(found))).values() if item.failed is not None]


def is_superseded(app: App, run: Run) -> bool:
    """Return whether a failed run has left nothing: later runs have done, or begun, all of its steps."""
    if run.status not in _FAILED:
        return False
    if is_rewind(run):
        later = app.journal.runs(project=run.project, job=run.job, since=run.finished or run.started)
        return any(each.run_id != run.run_id and each.phase == run.phase for each in later)
    wants = read_wants(app.journal, run.project, run.job)
    return not any(run.run_id in want.left.values() for want in wants)


def is_of_former_job(project: Project, run: Run) -> bool:
    """Return whether a run is of a job that a project without faults does not declare any more."""
    is_job = run.phase in Phase.__members__ and run.project == project.name
    return is_job and run.job not in project.jobs and not project.faults


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
    hidden = {name for name, value in run.parameters.items() if HIDDEN in str(value)}
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
