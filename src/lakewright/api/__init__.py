"""The Python API: a project with its jobs, entities, relations and mappings.

```python
from lakewright import Project

with Project.load("lake") as lake:
    lake.run("daily", "build")
    lake.entity("regions").read(current=True).show()
```

Source: `processing-strategies.md`, "Code Flow" and "Usage" (`Processing`); the rest is Lakewright's own.
"""

from __future__ import annotations

from lakewright.api.arguments import Range
from lakewright.api.definitions import Entity, Job, Mapping, Processing, Relation
from lakewright.api.project import Project
from lakewright.api.results import RunEvent, Runs
from lakewright.plan.step import Plan
from lakewright.run.result import RunResult
from lakewright.slices.land import LandedSlice
from lakewright.slices.result import ProcessResult
from lakewright.usecases.due.status import ProjectStatus

__all__ = [
    "Entity",
    "Job",
    "LandedSlice",
    "Mapping",
    "Plan",
    "ProcessResult",
    "Processing",
    "Project",
    "ProjectStatus",
    "Range",
    "Relation",
    "RunEvent",
    "RunResult",
    "Runs",
]
