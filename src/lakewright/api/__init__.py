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
