"""Check the values that definitions give for partition columns, with the place of a wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakewright.errors import SpecError
from lakewright.lake.partition import Partition, canonical_partition, expand_selection
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.reading.parsed_file import value_at
from lakewright.workspace.readable_parts import ReadableRelation

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


def check_partition_values(
    workspace: Workspace,
    definition: Definition | None,
    relation: ReadableRelation,
    values: Mapping[str, Any],
    path: tuple[str, ...],
) -> None:
    """Check that a definition gives each partition column a value that it can have.

    Args:
        workspace: The names of the instance.
        definition: The definition, which shows where a value is written, and with which expression.
        relation: The relation that has the columns.
        values: Texts by column, or values, lists and ranges of them.
        path: The keys of the definition below which they are.

    Raises:
        SpecError: A column isn't one of the relation's, or a value is empty, not of its type, or not one that
            the relation can store. The error names the relation and the expression, and has the place of the
            value.
    """
    for name, value in values.items():
        try:
            for partition in _partitions(relation, name, value):
                relation.check_partition(workspace, partition)
        except SpecError as error:
            raise _located(error, definition, relation, (*path, name)) from error


def _partitions(relation: ReadableRelation, name: str, value: Any) -> Sequence[Partition]:
    if isinstance(value, str):
        return [canonical_partition(relation.partitions, {name: value})]
    return expand_selection(relation.partitions, {name: value})


def _located(
    error: SpecError, definition: Definition | None, relation: ReadableRelation, path: tuple[str, ...]
) -> SpecError:
    message = f"{_label(relation)}: {error.message}"
    if definition is None:
        return SpecError.of(message, remedy=error.remedy)
    written = value_at(definition.raw, path)
    is_known = path[-1].lower() in {field.name.lower() for field in relation.partitions}
    is_given = is_known and isinstance(written, str) and "$" in written
    given = f" (given as {written})" if is_given else ""
    message = f"{definition.subject}: {message}{given}"
    return SpecError.of(message, location=definition.at(*path), remedy=error.remedy)


def _label(relation: ReadableRelation) -> str:
    return f"relation {relation.name!r}" if relation.name else f"the {relation.kind} relation"
