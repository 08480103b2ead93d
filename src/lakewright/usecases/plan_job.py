"""Plan a job: show what a run would do, and why."""

from __future__ import annotations

from lakewright.app import App
from lakewright.plan.graph import Node
from lakewright.plan.step import Plan
from lakewright.run.request import JobRequest
from lakewright.stores.memory import MemoryStore

__all__ = ["plan_job", "target_nodes"]


def plan_job(app: App, request: JobRequest) -> Plan:
    """Return what a run would do. Nothing is written anywhere, not even an empty manifest.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    return app.read_store(lambda store: app.job_run(request, store).plan())


def target_nodes(app: App, request: JobRequest) -> dict[str, Node]:
    """Return what each target of a job requires and provides in one phase of its first instance.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    return app.job_run(request, MemoryStore()).nodes()
