"""Validate where the past versions of entities are said to be: `history_from`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError, NotInstalled
from lakewright.spec.models.entity import Entity

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.usecases.validation.definitions import Evaluation

__all__ = ["PastFaults", "past_faults"]


@dataclass(frozen=True, slots=True)
class PastFaults:
    """What is wrong with the pasts of a project's entities.

    Attributes:
        errors: Columns that are missing.
        warnings: Places that can't be read here; a run may be able to, or need them no longer.
    """

    errors: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def past_faults(evaluation: Evaluation, lake: Lake) -> PastFaults:
    """Return what is wrong with `history_from` of entities, as far as it is known without Spark."""
    faults = PastFaults()
    seen = set()
    for each in evaluation.evaluated:
        entity = each.model
        if not isinstance(entity, Entity) or entity.settings.history_from is None:
            continue
        mark = (each.definition.name, entity.settings.history_from.text)
        if mark in seen:
            continue
        seen.add(mark)
        from lakewright.slices.past import check_past  # only few projects need it

        try:
            check_past(lake, entity)
        except NotInstalled:
            continue  # only Spark can read the place
        except LakewrightError as error:
            fault = Fault(
                f"{each.definition.subject}: {error.message}",
                each.definition.at("settings", "history_from"),
                error.remedy,
            )
            (faults.errors if "lacks" in error.details else faults.warnings).append(fault)
    return faults
