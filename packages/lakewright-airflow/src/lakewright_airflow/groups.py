"""A task group for a job: one task a target."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from airflow.sdk import TaskGroup

from lakewright_airflow.documents import planned_tasks
from lakewright_airflow.operators import LakewrightJobOperator
from lakewright_airflow.places import check_place


def job_task_group(
    job: str,
    *,
    graph: str | PathLike[str] | Mapping[str, Any] | None = None,
    group_id: str | None = None,
    phase: str = "verify",
    **options: Any,
) -> TaskGroup:
    """Return a task group with a task for each target of a job, in the order of a run.

    Args:
        job: Its name.
        graph: What `lakewright graph JOB -o json` prints, or the file that has it. Without it, the project is
            loaded whenever Airflow reads the DAG file, which takes a second or two.
        group_id: The id of the group; by default the name of the job.
        phase: The last phase of each task.
        **options: What `LakewrightJobOperator` takes, such as `server`, `parameters` and `retries`.

    Raises:
        SpecError: The project has no such job, or is wrong.
        ValueError: The graph is of another job, or only a server is given.
    """
    check_place(options.get("project"), options.get("server"))
    document = _graph(job, graph, options.get("project"))
    with TaskGroup(group_id or job) as group:
        tasks = {}
        for each in planned_tasks(document):
            tasks[each.target] = LakewrightJobOperator(
                task_id=re.sub(r"[^\w-]", "_", each.target),
                job=job,
                phase="validate" if each.kind == "validate" else phase,
                targets=[re.escape(each.target)],
                **options,
            )
            for before in each.after:
                tasks[before] >> tasks[each.target]
    return group


def _graph(
    job: str, given: str | PathLike[str] | Mapping[str, Any] | None, project: str | None
) -> Mapping[str, Any]:
    if given is None and project is None:
        raise ValueError(
            f"the targets of {job} are not known. "
            f"Do: give graph=, what `lakewright graph {job} -o json` prints"
        )
    if given is None:
        from lakewright import Project

        with Project.load(project or "") as loaded:
            return {"job": job, "targets": [each.as_json() for each in loaded.graph(job)]}
    found = given if isinstance(given, Mapping) else json.loads(Path(given).read_text("utf-8"))
    if found.get("job") != job or found.get("schema", "lakewright/graph/1") != "lakewright/graph/1":
        raise ValueError(f"this is no graph of {job}. Do: write it anew, `lakewright graph {job} -o json`")
    return found
