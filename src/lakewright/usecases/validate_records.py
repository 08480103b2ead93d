"""Check the values of records that a project declares against the types of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lakewright.errors import Fault, LakewrightError
from lakewright.mappings.values import ValuesMapping
from lakewright.relations.values import ValuesRelation
from lakewright.spec.models.records import record_faults
from lakewright.usecases.validate_definitions import Evaluated, Evaluation

__all__ = ["value_faults"]


def value_faults(evaluation: Evaluation) -> Iterator[Fault]:
    """Yield the faults of the records of `values` mappings and relations, with the place of each value.

    Records with expressions are left out: a job may give them other values.
    """
    for each in evaluation.evaluated:
        if not isinstance(each.model, ValuesMapping | ValuesRelation):
            continue
        try:
            found = each.model
            declare = found.fields if isinstance(found, ValuesMapping) else found.declared
            fields = declare(each.workspace)
        except LakewrightError:
            continue  # its schema has a fault of its own
        for path, fault in record_faults(fields, found.records) if fields else ():
            if "$" not in str(_written(each, path[0])):
                message = f"{each.definition.subject}: {fault.message}"
                yield replace(fault, message=message, location=each.definition.at("records", *path))


def _written(each: Evaluated, index: str | int) -> Any:
    """Return a record as it is written; everything that is, where a template makes it."""
    records = each.definition.raw.get("records")
    return records[index] if isinstance(records, list) and isinstance(index, int) else each.definition.raw
