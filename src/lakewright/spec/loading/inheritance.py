"""Inheritance of jobs and tests from those that they extend."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence
from typing import cast

from lakewright.errors import Fault
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.models.base import Named
from lakewright.spec.models.case import Case
from lakewright.spec.models.job import Job

__all__ = ["inherit"]

DEEPEST = 100
"""A longer chain of `extends` is assumed to be a mistake."""


def inherit(
    category: str,
    definitions: Mapping[str, Definition],
    models: Mapping[str, Named],
    faults: MutableSequence[Fault],
) -> dict[str, Named]:
    """Return jobs, or tests, with what they inherit. A cycle is a fault; unknown parents are ignored."""
    whole: dict[str, Named] = {}

    def complete(name: str, path: tuple[str, ...]) -> Named:
        if name in whole:
            return whole[name]
        if len(path) > DEEPEST:
            why = f"{category}s extend each other over more than {DEEPEST} levels"
            faults.append(Fault(why, definitions[name].at("extends"), "Let them extend one common parent."))
            return models[name]
        own = cast("Job | Case", models[name])
        parents: list[Named] = []
        for index, parent in enumerate(own.extends):
            if parent in (*path, name):
                cycle = f"{category}s extend each other in a cycle: {' -> '.join((*path, name, parent))}"
                where = definitions[name].at("extends", index)
                remedy, touched = "Remove one of the `extends`.", ((category, name),)
                faults.append(Fault(cycle, where, remedy, touches=touched))
            elif parent in models:
                parents.append(complete(parent, (*path, name)))
        whole[name] = own.extending(parents)  # type: ignore[arg-type]  # parents are of the same category
        return whole[name]

    for name in models:
        complete(name, ())
    return {name: whole[name] for name in models}
