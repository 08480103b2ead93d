"""Check the columns that `documentation` blocks name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright.documentation.checks.primary_key import PrimaryKeyCheck
from lakewright.errors import Fault, LakewrightError
from lakewright.mappings.mapping import Mapping
from lakewright.relations.relation import Relation
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.suggestions import suggestion
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.usecases.validation.sql import MappingColumns
from lakewright.workspace.sql_check import SqlChecker

__all__ = ["documented_column_faults"]


def documented_column_faults(evaluation: Evaluation, checker: SqlChecker) -> tuple[Fault, ...]:
    """Return the documented columns that a relation, mapping or target lacks as it is declared, each once."""
    found = (
        fault
        for each in evaluation.evaluated
        if isinstance(each.model, Relation | Mapping | Target) and each.model.documentation is not None
        for fault in _faults(each, _known(each, checker))
    )
    return tuple(dict.fromkeys(found))


def _known(each: Evaluated, checker: SqlChecker) -> Sequence[str] | None:
    """Return the columns that are declared; None if they are not known."""
    model = each.model
    if isinstance(model, Mapping):
        return MappingColumns(each.workspace, checker).of(each.definition.name)
    try:
        source = model.output(each.workspace) if isinstance(model, WritingTarget) else model
        declare = getattr(source, "declared", None)
        fields = None if declare is None else declare(each.workspace)
        partitions = source.partitions if isinstance(source, Relation) else ()
        return None if fields is None else [field.name for field in (*fields, *partitions)]
    except LakewrightError:
        return None  # it has a fault of its own, or only its data tells its columns


def _faults(each: Evaluated, known: Sequence[str] | None) -> Iterator[Fault]:
    if known is None:
        return
    there = {name.lower() for name in known}
    for name, path in _named(each):
        # A name may be the path of a field.
        if name.lower() not in there and name.lower().partition(".")[0] not in there:
            message = f"{each.definition.subject}: its documentation names a column {name!r}, which it lacks"
            yield Fault(message, each.definition.at("documentation", *path), suggestion(name, known))


def _named(each: Evaluated) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    documentation = getattr(each.model, "documentation", None) or Documentation()
    for index, column in enumerate(documentation.columns):
        yield column.name, ("columns", index)
    for index, check in enumerate(documentation.checks):
        if isinstance(check, PrimaryKeyCheck):
            yield from ((name, ("checks", index)) for name in check.columns)
