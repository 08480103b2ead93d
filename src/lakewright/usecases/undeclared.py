"""Entities that the manifest has slices of, and the project does not declare, such as renamed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lakewright.app import App
from lakewright.manifest.item import Verdict
from lakewright.manifest.record import Application
from lakewright.slices.application import application_of, entity_of

__all__ = ["UNDECLARED_ADVICE", "Undeclared", "undeclared_entities"]

UNDECLARED_ADVICE = (
    "If it was renamed, its table and its slices have the former name: declare it under that, or process the "
    "slices again under the new one, into a table of its own; if they are in the same folder, that ends this "
    "message. To remove both, run DESTROY under the former name."
)


@dataclass(frozen=True, slots=True)
class Undeclared:
    """An entity that the project does not declare.

    Attributes:
        application: The application that its slices were recorded for.
        processed: Number of the slices that are processed, and not by a declared entity as well.
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
    """Yield the entities that the project does not declare, with slices that only these have processed.

    None are told of a project with faults: they may be what could not be read.
    """
    if app.project.faults:
        return
    declared = [application_of(app.project.name, each) for each in app.project.entities.values()]
    alone, others = Counter[Application](), Counter[Application]()
    for standing, number in app.store.standings().items():
        if any(standing.has_processed(each) for each in declared):
            continue
        for application in standing.concerned:
            is_processed = standing.verdict(application) is Verdict.PROCESSED
            (alone if is_processed else others)[application] += number
    for application, processed in alone.items():
        entity = entity_of(app.project.name, application)
        if entity is not None and entity not in app.project.entities:
            yield Undeclared(entity, str(application), processed, others[application])
