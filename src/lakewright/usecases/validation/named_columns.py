"""Check the partitions and columns that definitions and their documentation name, and options of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Models
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from lakewright.checks.keys import PrimaryKeyCheck
from lakewright.errors import Fault, LakewrightError, SpecError
from lakewright.lake.partition import canonical_partition
from lakewright.mappings.combine import UnionMapping
from lakewright.mappings.mapping import Mapping
from lakewright.mappings.sources import RelationMapping
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.file import FileRelation
from lakewright.relations.file_options import unknown_options
from lakewright.relations.jdbc import JdbcTableRelation
from lakewright.relations.relation import OutputMode, Relation, StoredRelation
from lakewright.spec.reading.parsed_file import value_at
from lakewright.spec.suggestions import suggestion
from lakewright.targets.context import TargetDefaults
from lakewright.targets.datasets import FileDataset, MappingDataset, RelationDataset
from lakewright.targets.file_output import LocalTarget
from lakewright.targets.readers import ConsoleTarget
from lakewright.targets.relation import FileTarget, MergeTarget
from lakewright.targets.removal import TruncateTarget
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.usecases.validation.sql import Columns, MappingColumns, declared_names
from lakewright.workspace.readable_parts import ReadableRelation, check_partition_values

DATASETS = ("source", "target", "input", "actual", "expected")
"""The keys of targets that hold datasets."""


def _key_faults(each: Evaluated) -> Iterator[Fault]:
    """Yield that a target updates or merges rows of a Delta table of which no key is declared."""
    model = each.model
    if not isinstance(model, WritingTarget) or model.mapping is None:
        return
    key = "mode"
    if isinstance(model, MergeTarget):
        if model.merge_key or model.condition:
            return
        key = "relation"
    if model.mode_of(TargetDefaults.of(each.workspace.project.config)) is not OutputMode.UPDATE:
        return
    try:
        relation = model.output(each.workspace)
    except LakewrightError:
        return  # the relation has a fault of its own
    try:
        if isinstance(relation, DeltaRelation):
            relation.update_key()
    except SpecError as error:
        for fault in error.faults:
            yield each.definition.fault(fault.message, key, remedy=fault.remedy)


def check_columns(evaluation: Evaluation, columns: Columns) -> None:
    """Report the partitions, columns and options that evaluated definitions name, and that do not exist.

    What partition columns a relation has is certain. A table may have more columns than are declared, and
    Spark more options than Lakewright knows, so that those are warnings.
    """
    for each in evaluation.evaluated:
        known = columns.of(each.workspace)
        for errors in (_undeclared_columns(each), _partition_faults(each), _key_faults(each)):
            evaluation.report(errors, is_error=True)
        for warnings in (_column_faults(each, known), _option_faults(each), _documented_columns(each, known)):
            evaluation.report(warnings, is_error=False)


@dataclass(frozen=True, slots=True)
class _Named:
    """Partition columns that a definition names of a relation.

    Attributes:
        values: Their values, as the definition has them.
        path: The keys of the definition below which they are.
        is_written: Whether rows are written to the partition.
    """

    relation: ReadableRelation
    values: Models[str, Any]
    path: tuple[str, ...]
    is_written: bool = False

    def check(self, each: Evaluated, name: str) -> None:
        """Raise an error if the relation has no such partition column, or the value is not one of its own."""
        values = {name: self.values[name]}
        check_partition_values(each.workspace, each.definition, self.relation, values, self.path)


def _partition_faults(each: Evaluated) -> Iterator[Fault]:
    for named in _named_partitions(each):
        found = list(_name_faults(each, named))
        yield from found
        if found or not named.is_written or not isinstance(named.relation, StoredRelation):
            continue
        try:
            named.relation.open_columns(canonical_partition(named.relation.partitions, named.values))
        except LakewrightError as error:
            yield each.definition.fault(error.message, *named.path, remedy=error.remedy)


def _name_faults(each: Evaluated, named: _Named) -> Iterator[Fault]:
    known = {field.name.lower() for field in named.relation.partitions}
    for name in named.values:
        try:
            named.check(each, name)
        except SpecError as error:
            # A job may give an expression another value.
            if name.lower() not in known or "$" not in str(
                value_at(each.definition.raw, (*named.path, name))
            ):
                yield from error.faults


def _named_partitions(each: Evaluated) -> Iterator[_Named]:
    model, workspace = each.model, each.workspace
    if isinstance(model, RelationMapping):
        yield from _of(partial(model.source, workspace), model.partitions, ("partitions",))
    elif isinstance(model, TruncateTarget):
        yield from _of(partial(model.stored, workspace), model.partitions, ("partitions",))
    elif isinstance(model, WritingTarget):
        is_written = model.mapping is not None and bool(model.partition)
        yield from _of(
            partial(model.output, workspace), model.partition, ("partition",), is_written=is_written
        )
    for side in DATASETS:
        dataset = getattr(model, side, None)
        if isinstance(dataset, RelationDataset):
            is_written = side == "target" and bool(dataset.partition)
            find = partial(dataset.source, workspace)
            yield from _of(find, dataset.partition, (side, "partition"), is_written=is_written)


def _of(
    relation: Callable[[], ReadableRelation],
    values: Models[str, Any],
    path: tuple[str, ...],
    *,
    is_written: bool = False,
) -> Iterator[_Named]:
    if not values:
        return
    try:
        yield _Named(relation(), values, path, is_written)
    except LakewrightError:
        return  # the relation has a fault of its own


def _column_faults(each: Evaluated, columns: MappingColumns) -> Iterator[Fault]:
    model = each.model
    if isinstance(model, LocalTarget):
        known = columns.of(model.mapping)
        yield from _absent(each, _placed(model.columns, "columns"), known, _of_mapping(model.mapping))
    elif isinstance(model, ConsoleTarget) and isinstance(model.input, MappingDataset):
        source = model.input.mapping
        yield from _absent(each, _placed(model.columns, "columns"), columns.of(source), _of_mapping(source))
    elif isinstance(model, WritingTarget) and model.mapping is not None:
        brought = columns.of(model.mapping)
        if isinstance(model, MergeTarget):
            own = {name.lower() for name in model.partition}
            key = [name for name in model.merge_key if name.lower() not in own]
            yield from _absent(each, _placed(key, "mergeKey"), brought, _of_mapping(model.mapping))
            there = columns.of_output(model)
            for index, clause in enumerate(model.clauses):
                named = _placed(clause.columns, "clauses", index, "columns")
                yield from _absent(each, named, there, "its relation declares no column")
        yield from _unfilled(each, model, brought)
    elif isinstance(model, Mapping):
        if isinstance(model, UnionMapping):
            found = [columns.of(name) for name in model.union_inputs]
            united = None if None in found else list(chain.from_iterable(each or () for each in found))
            named, declares = (
                _placed(model.columns or {}, "columns"),
                "all its inputs together declare no column",
            )
            yield from _absent(each, named, united, declares)
        for column in model.named_columns():
            declares = f"its input {column.input!r} declares no column"
            place, known = [(column.name, column.place)], columns.of(column.input)
            yield from _absent(each, place, known, declares, has_fields=True)
    elif isinstance(model, DeltaRelation | JdbcTableRelation):
        keys = {"mergeKey": model.merge_key, "primaryKey": getattr(model, "primary_key", ())}
        names = declared_names(each.workspace, lambda: model)
        for name, listed in keys.items():
            yield from _absent(each, _placed(listed, name), names, "it declares no column")


def _undeclared_columns(each: Evaluated) -> Iterator[Fault]:
    """Yield the columns that a mapping reads of a relation which does not declare them."""
    mapping, workspace = each.model, each.workspace
    if isinstance(mapping, RelationMapping) and mapping.columns:
        names = declared_names(workspace, lambda: mapping.source(workspace))
        called = mapping.relation if isinstance(mapping.relation, str) else mapping.relation.name
        named = _placed(mapping.columns, "columns")
        yield from _absent(each, named, names, f"relation {called!r} declares no column")


def _documented_columns(each: Evaluated, columns: MappingColumns) -> Iterator[Fault]:
    """Yield the columns that a `documentation` block names and its relation, mapping or target lacks."""
    model, workspace = each.model, each.workspace
    if not isinstance(model, Relation | Mapping | Target) or model.documentation is None:
        return
    if isinstance(model, Mapping):
        known = columns.of(each.definition.name)
    else:
        find = partial(model.output, workspace) if isinstance(model, WritingTarget) else lambda: model
        known = declared_names(workspace, find, with_partitions=True)
    named = [(column.name, ("columns", at)) for at, column in enumerate(model.documentation.columns)]
    for index, check in enumerate(model.documentation.checks):
        if isinstance(check, PrimaryKeyCheck):
            named += [(name, ("checks", index)) for name in check.columns]
    placed = [(name, ("documentation", *path)) for name, path in named]
    says = "its documentation names a column"
    yield from _absent(each, placed, known, says, ", which it lacks", has_fields=True)


def _of_mapping(name: str) -> str:
    return f"its mapping {name!r} declares no column"


def _unfilled(each: Evaluated, target: WritingTarget, brought: Sequence[str] | None) -> Iterator[Fault]:
    """Yield partition columns that have no value: neither the target nor its mapping names them."""
    try:
        relation = target.output(each.workspace)
    except LakewrightError:
        return
    there = {name.lower() for name in (*(brought or ()), *target.partition)}
    for field in relation.partitions if brought is not None else ():
        if field.name.lower() not in there:
            why = (
                f"{relation.label} is partitioned by {field.name}, of which neither `partition` nor its "
                f"mapping {target.mapping!r} has a value"
            )
            yield each.definition.fault(why, "partition", remedy=f"Add {field.name} to one of them.")


Named = tuple[str, tuple[str | int, ...]]
"""A column, and the keys of the definition below which it is named."""


def _placed(names: Iterable[str] | Models[str, Any], *path: str | int) -> list[Named]:
    """Return columns with their places; those of a list are named by their numbers."""
    keys: Iterable[str | int] = names if isinstance(names, Models) else range(len(list(names)))
    return [(name, (*path, key)) for name, key in zip(names, keys, strict=True)]


def _absent(
    each: Evaluated,
    named: Iterable[Named],
    known: Sequence[str] | None,
    says: str,
    more: str = "",
    *,
    has_fields: bool = False,
) -> Iterator[Fault]:
    """Yield a fault for each column that is not among those that are known; nothing if none are known.

    Args:
        each: The definition that names the columns.
        named: The columns with their places.
        known: The columns that there are.
        says: What stands before a column in the message.
        more: What stands behind it.
        has_fields: Whether a name may be the path of a field.
    """
    lower = {name.lower() for name in known or ()}
    for name, path in named if known is not None else ():
        whole = name.lower()
        if whole not in lower and not (has_fields and whole.partition(".")[0] in lower):
            remedy = suggestion(name, known or ())
            yield each.definition.fault(f"{says} {name!r}{more}", *path, remedy=remedy)


def _option_faults(each: Evaluated) -> Iterator[Fault]:
    for source, path in _file_sources(each.model):
        for name, remedy in unknown_options(source.format, source.options):
            why = (
                f"Lakewright knows no option {name!r} of Spark for {source.format} files, which ignores what "
                "it does not know"
            )
            yield each.definition.fault(why, *path, "options", name, remedy=remedy)


def _file_sources(model: Any) -> Iterator[tuple[FileRelation | FileDataset | FileTarget, tuple[str, ...]]]:
    if isinstance(model, FileRelation | FileTarget):
        yield model, ()
    for key in (*DATASETS, "relation"):
        inner = getattr(model, key, None)
        if isinstance(inner, FileRelation | FileDataset):
            yield inner, (key,)
