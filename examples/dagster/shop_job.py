"""A job for Dagster: runs the job `daily` of a Lakewright project for the day of each partition.

`SHOP_PROJECT=/srv/shop dagster dev -f shop_job.py` shows it.
"""

# Without `from __future__ import annotations`: Dagster reads the type of `context`.
import os
from datetime import date

from dagster import DailyPartitionsDefinition, OpExecutionContext, job, op

from lakewright import Project, RunEvent

PROJECT = os.environ.get("SHOP_PROJECT", "/srv/shop")


@op
def daily(context: OpExecutionContext) -> str:
    """Run the job and log each slice; a failed run fails the op."""

    def log(event: RunEvent) -> None:
        if event.slice is not None:
            context.log.info(str(event.slice))

    with Project.load(PROJECT) as project:
        day = date.fromisoformat(context.partition_key)
        result = project.run("daily", day=day, wait=True, retry=True, on_event=log)
        return result.check().summary


@job(partitions_def=DailyPartitionsDefinition(start_date="2024-05-01"))
def shop() -> None:
    """Bring the shop's lake up to date."""
    daily()
