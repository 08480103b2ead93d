"""Check the partition columns and other columns that mappings and targets name, and options of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from lakewright.errors import Fault, LakewrightError, SpecError
from lakewright.lake.partition import canonical_partition
from lakewright.mappings.relation import RelationMapping
from lakewright.mappings.union import UnionMapping
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.file import FileRelation
from lakewright.relations.file_options import unknown_options
from lakewright.relations.jdbc import JdbcTableRelation
from lakewright.relations.relation import OutputMode, StoredRelation
from lakewright.spec.suggestions import suggestion
from lakewright.targets.console import ConsoleTarget
from lakewright.targets.datasets.file import FileDataset
from lakewright.targets.datasets.mapping import MappingDataset
from lakewright.targets.datasets.relation import RelationDataset
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.file import FileTarget
from lakewright.targets.local import LocalTarget
from lakewright.targets.merge import MergeTarget
from lakewright.targets.truncate import TruncateTarget
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.usecases.validation.mappings import MappingFaults
from lakewright.usecases.validation.sql import MappingColumns
from lakewright.workspace.partition_values import check_partition_values, written_at
from lakewright.workspace.readable import ReadableRelation
from lakewright.workspace.sql_check import SqlChecker

__all__ = ["DATASETS", "named_column_faults"]

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
            yield Fault(f"{each.definition.subject}: {fault.message}", each.definition.at(key), fault.remedy)


def named_column_faults(evaluation: Evaluation, checker: SqlChecker) -> MappingFaults:
    """Return the faults of partitions, columns and options that evaluated definitions name, each once.

    What partition columns a relation has is certain. A table may have more columns than are declared, and
    Spark more options than Lakewright knows, so that those are warnings.
    """
    errors: dict[Fault, None] = {}
    warnings: dict[Fault, None] = {}
    for each in evaluation.evaluated:
        errors |= dict.fromkeys(_partition_faults(each))
        errors |= dict.fromkeys(_key_faults(each))
        columns = MappingColumns(each.workspace, checker)
        warnings |= dict.fromkeys(_column_faults(each, columns))
        warnings |= dict.fromkeys(_option_faults(each))
    return MappingFaults(list(errors), list(warnings))


@dataclass(frozen=True, slots=True)
class _Named:
    """Partition columns that a definition names of a relation.

    Attributes:
        values: Their values, as the definition has them.
        path: The keys of the definition below which they are.
        is_written: Whether rows are written to the partition.
    """

    relation: ReadableRelation
    values: Mapping[str, Any]
    path: tuple[str, ...]
    is_written: bool = False

    def check(self, each: Evaluated, name: str) -> None:
        """Raise an error if the relation has no such partition column, or the value is not one of its own."""
        values = {name: self.values[name]}
        check_partition_values(each.workspace, each.definition, self.relation, values, self.path)


def _partition_faults(each: Evaluated) -> Iterator[Fault]:
    subject = each.definition.subject
    for named in _named_partitions(each):
        found = list(_name_faults(each, named))
        yield from found
        if found or not named.is_written or not isinstance(named.relation, StoredRelation):
            continue
        try:
            named.relation.open_columns(canonical_partition(named.relation.partitions, named.values))
        except LakewrightError as error:
            yield Fault(f"{subject}: {error.message}", each.definition.at(*named.path), error.remedy)


def _name_faults(each: Evaluated, named: _Named) -> Iterator[Fault]:
    known = {field.name.lower() for field in named.relation.partitions}
    for name in named.values:
        try:
            named.check(each, name)
        except SpecError as error:
            # A job may give an expression another value.
            if name.lower() not in known or "$" not in str(written_at(each.definition, (*named.path, name))):
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
    values: Mapping[str, Any],
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
        said = _of_mapping(model.mapping)
        yield from _absent(each, model.columns, columns.of(model.mapping), ("columns",), said)
    elif isinstance(model, ConsoleTarget) and isinstance(model.input, MappingDataset):
        source = model.input.mapping
        yield from _absent(each, model.columns, columns.of(source), ("columns",), _of_mapping(source))
    elif isinstance(model, WritingTarget) and model.mapping is not None:
        brought = columns.of(model.mapping)
        if isinstance(model, MergeTarget):
            own = {name.lower() for name in model.partition}
            key = [name for name in model.merge_key if name.lower() not in own]
            yield from _absent(each, key, brought, ("mergeKey",), _of_mapping(model.mapping))
            there = columns.of_output(model)
            for index, clause in enumerate(model.clauses):
                path = ("clauses", index, "columns")
                yield from _absent(each, clause.columns, there, path, "its relation declares")
        yield from _unfilled(each, model, brought)
    elif isinstance(model, UnionMapping):
        found = [columns.of(name) for name in model.union_inputs]
        known = None if None in found else list(chain.from_iterable(each or () for each in found))
        yield from _absent(each, model.columns or {}, known, ("columns",), "all its inputs together declare")
    elif isinstance(model, DeltaRelation | JdbcTableRelation):
        yield from _undeclared_keys(each, model)


def _of_mapping(name: str) -> str:
    return f"its mapping {name!r} declares"


def _unfilled(each: Evaluated, target: WritingTarget, brought: Sequence[str] | None) -> Iterator[Fault]:
    """Yield partition columns that have no value: neither the target nor its mapping names them."""
    try:
        relation = target.output(each.workspace)
    except LakewrightError:
        return
    there = {name.lower() for name in (*(brought or ()), *target.partition)}
    for field in relation.partitions if brought is not None else ():
        if field.name.lower() not in there:
            message = (
                f"{each.definition.subject}: {relation.label} is partitioned by {field.name}, of which "
                f"neither `partition` nor its mapping {target.mapping!r} has a value"
            )
            yield Fault(message, each.definition.at("partition"), f"Add {field.name} to one of them.")


def _undeclared_keys(each: Evaluated, relation: DeltaRelation | JdbcTableRelation) -> Iterator[Fault]:
    try:
        fields = relation.declared(each.workspace)
    except LakewrightError:
        return
    if fields is None:
        return
    names = [field.name for field in fields]
    keys: dict[str, Sequence[str]] = {"mergeKey": relation.merge_key}
    if isinstance(relation, JdbcTableRelation):
        keys["primaryKey"] = relation.primary_key
    for key, columns in keys.items():
        yield from _absent(each, columns, names, (key,), "it declares")


def _absent(
    each: Evaluated,
    names: Iterable[str] | Mapping[str, Any],
    known: Sequence[str] | None,
    path: tuple[str | int, ...],
    declares: str,
) -> Iterator[Fault]:
    lower = None if known is None else {name.lower() for name in known}
    for index, name in enumerate(names):
        if lower is not None and name.lower() not in lower:
            message = f"{each.definition.subject}: {declares} no column {name!r}"
            key = name if isinstance(names, Mapping) else index
            yield Fault(message, each.definition.at(*path, key), suggestion(name, known or ()))


def _option_faults(each: Evaluated) -> Iterator[Fault]:
    for source, path in _file_sources(each.model):
        for name, remedy in unknown_options(source.format, source.options):
            message = (
                f"{each.definition.subject}: Lakewright knows no option {name!r} of Spark for "
                f"{source.format} files, which ignores what it does not know"
            )
            yield Fault(message, each.definition.at(*path, "options", name), remedy)


def _file_sources(model: Any) -> Iterator[tuple[FileRelation | FileDataset | FileTarget, tuple[str, ...]]]:
    if isinstance(model, FileRelation | FileTarget):
        yield model, ()
    for key in (*DATASETS, "relation"):
        inner = getattr(model, key, None)
        if isinstance(inner, FileRelation | FileDataset):
            yield inner, (key,)
