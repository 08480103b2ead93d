"""Entities that the manifest has slices of, and the project does not declare, such as renamed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lakewright.app import App
from lakewright.manifest.item import Verdict
from lakewright.slices.application import entity_of
from lakewright.usecases.entity_standing import read_standings

__all__ = ["UNDECLARED_ADVICE", "Undeclared", "undeclared_entities"]

UNDECLARED_ADVICE = (
    "If it was renamed, its table and its slices have the former name: declare it under that, or process the "
    "slices again under the new one, into a table of its own. To remove both, run DESTROY under the former "
    "name."
)


@dataclass(frozen=True, slots=True)
class Undeclared:
    """An entity that the project does not declare.

    Attributes:
        application: The application that its slices were recorded for.
        processed: Number of the slices that are processed.
        others: Number of all other slices.
    """

    entity: str
    application: str
    processed: int
    others: int

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {
            "entity": self.entity,
            "application": self.application,
            "processed": self.processed,
            "others": self.others,
        }


def undeclared_entities(app: App) -> Iterator[Undeclared]:
    """Yield the entities that have processed slices, and that the project does not declare.

    None are told of a project with faults: they may be what could not be read.
    """
    if app.project.faults:
        return
    others = read_standings(app, with_last_slices=False).others
    for application, standing in others.items():
        entity = entity_of(app.project.name, application)
        if entity is not None and entity not in app.project.entities:
            processed = standing.count(Verdict.PROCESSED)
            if processed:
                yield Undeclared(
                    entity, str(application), processed, sum(standing.counts.values()) - processed
                )
