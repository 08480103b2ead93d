"""The registry of every kind that projects can declare."""

from __future__ import annotations

from lakewright import connections, mappings, relations, schemas, targets
from lakewright.documentation import checks
from lakewright.run import hooks
from lakewright.spec.definitions.registry import Registry
from lakewright.targets import assertions, datasets, measures

__all__ = ["PACKAGES", "registry"]

PACKAGES = {
    "connection": connections,
    "relation": relations,
    "mapping": mappings,
    "schema": schemas,
    "target": targets,
    "assertion": assertions,
    "check": checks,
    "dataset": datasets,
    "measure": measures,
    "hook": hooks,
}
"""The package of each category; its `KINDS` name the class of each kind."""


def registry() -> Registry:
    """Return every kind that the tool offers; each is imported when a project uses it."""
    return Registry(
        {category: package.KINDS for category, package in PACKAGES.items()},
        absent={category: package.NOT_OFFERED for category, package in PACKAGES.items()},
    )
