"""The status of a project: what runs now, what is due, its triggers and its last runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.due.words import plan_document, plan_rows
from lakewright.manifest.journal import RUNNING
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.notebook import html_table
from lakewright.stores.backend import write_fault
from lakewright.stores.registry import select_backend
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.history import run_as_json
from lakewright.usecases.items import Rows
from lakewright.usecases.triggers import list_triggers, withheld_triggers

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.due.plan import Plan
    from lakewright.errors import Fault
    from lakewright.manifest.journal import Run
    from lakewright.usecases.items import Row
    from lakewright.usecases.triggers import TriggerStatus, Withheld


RECENT = 200
"""The number of latest runs among which running ones are looked for; a history may hold many more."""

LAST_RUNS = 5


@dataclass(frozen=True, slots=True, repr=False)
class ProjectStatus:
    """What runs now in a project, what is due, and its last runs.

    Attributes:
        running: Runs in progress.
        locked: Items that are locked, also by runs that have ended.
        plan: What is due, as `lakewright plan` shows it.
        triggers: The project's triggers.
        last_runs: The latest runs, newest first.
        faults: What is wrong in the project's files.
        withheld: The triggers that start nothing because of it.
        unwritable: That the manifest can be read but not written, so that a run would fail; None if it can.
    """

    running: tuple[Run, ...]
    locked: tuple[Row, ...]
    plan: Plan
    triggers: tuple[TriggerStatus, ...] = ()
    last_runs: tuple[Run, ...] = ()
    faults: tuple[Fault, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    unwritable: Fault | None = None

    @property
    def needs_person(self) -> bool:
        """Whether something is to be decided or mended that only a person can."""
        return bool(self.faults or self.plan.asked)

    def __repr__(self) -> str:
        counts = {
            "running": len(self.running),
            "locked": len(self.locked),
            "needs_you": len(self.plan.asked),
            "due": len(self.plan.ready),
            "waits": len(self.plan.waiting),
            "findings": len(self.plan.findings),
            "triggers": sum(each.has_failed for each in self.triggers),
            "faults": len(self.faults),
        }
        said = " ".join(f"{part}={count}" for part, count in counts.items() if count)
        return f"<ProjectStatus {said or 'nothing is running or due'}>"

    def _repr_html_(self) -> str:
        rows = [*self._rows(), *plan_rows(self.plan)]
        rows += [
            (f"trigger {each.word}", str(each.lane), each.message, "")
            for each in self.triggers
            if each.has_failed
        ]
        title = "Status" if rows else "Nothing is running or due"
        return html_table(title, ("part", "subject", "what", "command"), rows)

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        for fault in (*self.faults, *filter(None, (self.unwritable,))):
            yield "project", "", fault.located_message, fault.remedy or ""
        for run in self.running:
            yield "running", run.job, run.run_id, ""
        for row in self.locked:
            yield "locked", row.owner, row.slice, ""

    def as_json(self) -> dict[str, Any]:
        """Return the document that `status -o json` prints."""
        return {
            **plan_document(self.plan),
            "running": [run_as_json(run) for run in self.running],
            "last_runs": [run_as_json(run) for run in self.last_runs],
            **document_of(self, "locked", "triggers", "faults", "withheld", "unwritable"),
        }


def project_status(app: App, plan: Plan | None = None, *, most_locked: int | None = None) -> ProjectStatus:
    """Return the status of a project; nothing is written, and Spark is not started.

    Args:
        app: The project.
        plan: What is due, if that is known; the lake is looked at unless it is given.
        most_locked: How many locked items are read; all unless given.
    """
    runs = tuple(app.journal.runs(RECENT))
    return ProjectStatus(
        running=tuple(run for run in runs if run.status == RUNNING),
        locked=tuple(islice(_locked(app), most_locked)),
        plan=plan_of_project(app) if plan is None else plan,
        triggers=list_triggers(app),
        last_runs=runs[:LAST_RUNS],
        faults=app.project.faults,
        withheld=withheld_triggers(app.project),
        unwritable=write_fault(select_backend(app.manifest_settings)),
    )


def _locked(app: App) -> Iterator[Row]:
    """Yield the locked items, each once: for the application that holds it, if it is listed."""
    rows = Rows(app)
    for item in app.store.select(Query(verdicts=frozenset({Verdict.LOCKED}))):
        found = [(row, row.lock.processing.application) for row in rows.of(item) if row.lock is not None]
        held = [row for row, holder in found if holder.covers(row.application)]
        yield from (held or [row for row, _ in found])[:1]
