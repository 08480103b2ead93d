"""A DAG for Airflow 3: after each day, runs the job `daily` of a Lakewright project for that day.

Put it into the folder of DAGs of an Airflow whose Python has Lakewright, and set SHOP_PROJECT. Airflow 3.0
needs an older SQLAlchemy than Lakewright: take 3.1 or newer.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task

PROJECT = os.environ.get("SHOP_PROJECT", "/srv/shop")


# One run at a time: a second one would only wait for the slices and tables that the first one holds.
@dag(schedule="@daily", start_date=datetime(2024, 5, 1, tzinfo=UTC), catchup=True, max_active_runs=1)
def shop() -> None:
    """Bring the shop's lake up to date."""

    @task(retries=2, retry_delay=timedelta(minutes=5))
    def daily(data_interval_end: datetime | None = None) -> str:
        """Run the job; a failed run fails the task, and its next try runs what that run left undone."""
        # Imported here, because Airflow reads DAG files often.
        from lakewright import Project

        if data_interval_end is None:
            raise ValueError("the DAG run has no data interval; trigger it with a logical date")
        # The end is the time of the schedule. The start is not always a day earlier: by Airflow 3's default
        # (`create_cron_data_intervals` is off), both are the same moment.
        day = (data_interval_end - timedelta(days=1)).date()
        with Project.load(PROJECT) as project:
            return project.run("daily", day=day, wait=True, retry=True).check().summary

    daily()


shop()
