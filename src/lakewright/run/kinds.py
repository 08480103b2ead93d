"""The registry of every kind that projects can declare."""

from __future__ import annotations

from collections.abc import Mapping

from lakewright import checks, connections, mappings, relations, schemas, targets
from lakewright.run import hooks
from lakewright.spec.definitions.registry import Registry

KINDS: Mapping[str, Mapping[str, str]] = {
    "connection": connections.KINDS,
    "relation": relations.KINDS,
    "mapping": mappings.KINDS,
    "schema": schemas.KINDS,
    "target": targets.KINDS,
    "assertion": checks.ASSERTIONS,
    "check": checks.CHECKS,
    "dataset": targets.DATASETS,
    "measure": targets.MEASURES,
    "hook": hooks.KINDS,
}
"""The class of each kind, by category."""

NOT_OFFERED: Mapping[str, Mapping[str, str]] = {
    "connection": connections.NOT_OFFERED,
    "relation": relations.NOT_OFFERED,
    "mapping": mappings.NOT_OFFERED,
    "target": targets.NOT_OFFERED,
    "assertion": {"template": "Declare the assertion in full, with expressions where it differs."},
    "measure": {"template": "Declare the measure in full, with expressions where it differs."},
}
"""Kinds of Flowman that are not supported, with what to use instead, by category."""


def registry() -> Registry:
    """Return every kind that the tool offers; each is imported when a project uses it."""
    return Registry(KINDS, absent=NOT_OFFERED)
