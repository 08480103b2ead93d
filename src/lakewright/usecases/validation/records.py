"""Check the values of declared records against the types of their columns, and what reads the past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, LakewrightError, NotInstalled
from lakewright.mappings.values import ValuesMapping
from lakewright.relations.values import ValuesRelation
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.records import record_faults
from lakewright.targets.datasets.values import ValuesDataset
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.usecases.validation.named_columns import DATASETS

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake

__all__ = ["PastFaults", "past_faults", "value_faults"]


def value_faults(evaluation: Evaluation) -> Iterator[Fault]:
    """Yield the faults of the records of `values` mappings and relations, with the place of each value.

    Records with expressions are left out: a job may give them other values.
    """
    for each in evaluation.evaluated:
        for found, where in _literals(each):
            try:
                declare = found.fields if isinstance(found, ValuesMapping) else found.declared
                fields = declare(each.workspace)
            except LakewrightError:
                continue  # its schema has a fault of its own
            for path, fault in record_faults(fields, found.records) if fields else ():
                if "$" not in str(_written(each, where, path[0])):
                    place = each.definition.at(*where, "records", *path)
                    yield replace(
                        fault, message=f"{each.definition.subject}: {fault.message}", location=place
                    )


def _literals(each: Evaluated) -> Iterator[tuple[ValuesMapping | ValuesRelation, tuple[str, ...]]]:
    """Yield what declares records, with the keys of the definition below which it does."""
    if isinstance(each.model, ValuesMapping | ValuesRelation):
        yield each.model, ()
    for key in DATASETS:
        dataset = getattr(each.model, key, None)
        if isinstance(dataset, ValuesDataset):
            yield dataset.source(each.workspace), (key,)


def _written(each: Evaluated, where: tuple[str, ...], index: str | int) -> Any:
    """Return a record as it is written; everything that is, where a template makes it."""
    owner: Any = each.definition.raw
    for key in where:
        owner = owner.get(key) if isinstance(owner, Mapping) else None
    records = owner.get("records") if isinstance(owner, Mapping) else None
    return records[index] if isinstance(records, list) and isinstance(index, int) else each.definition.raw


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
