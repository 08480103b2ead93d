"""Check the values of records that a project declares against the types of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lakewright.errors import Fault, LakewrightError
from lakewright.mappings.values import ValuesMapping
from lakewright.relations.values import ValuesRelation
from lakewright.spec.models.records import record_faults
from lakewright.targets.datasets.values import ValuesDataset
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.usecases.validation.named_columns import DATASETS

__all__ = ["value_faults"]


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
