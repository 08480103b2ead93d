"""Relations, mappings, targets and entities as items of the documentation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakewright.checks.check import Check, CheckResult
from lakewright.checks.run import CheckRequest, check_not_run, run_checks
from lakewright.documentation.document import Column, Item, Ref, Source
from lakewright.documentation.gathering.spark_plan import column_sources
from lakewright.errors import LakewrightError, TargetError
from lakewright.lake.observation import observe_table
from lakewright.lake.spark_errors import message_of
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import Watermarks
from lakewright.mappings.mapping import Mapping as MappingModel
from lakewright.plan.phase import Phase
from lakewright.relations.relation import Relation
from lakewright.slices.application import application_of
from lakewright.spec.models.column import Column as DeclaredColumn
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.fields import Field
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.targets.writing import WritingTarget
from lakewright.transform.system_columns import SystemColumns
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_NO_PLAN = "where its columns come from is not known: Spark Connect shows no plans"
_NOTHING = Documentation()


def relation_item(workspace: Workspace, name: str, *, is_checked: bool) -> Item:
    """Return a relation with its columns, which are declared or read from its storage."""
    relation = Relation.named(workspace, name)
    fields, note = _try(lambda: relation.fields(workspace))
    partitions = {each.name.lower() for each in relation.partitions}
    columns = [
        replace(_column(each), marks=("partition",) if each.name.lower() in partitions else ())
        for each in fields
    ]
    item = Item(
        Ref("relation", relation.name),
        relation.kind,
        description=relation.description,
        facts=tuple(_relation_facts(workspace, relation)),
        code=getattr(relation, "sql", None),
        note=note,
        columns=tuple(columns),
        reads=tuple(
            Ref(each.category, each.name)
            for each in relation.references()
            if each.path[:1] != ("schema",) and each.category in ("relation", "mapping", "entity")
        ),
    )
    return _checked(
        workspace, item, relation.documentation, lambda: relation.read(workspace), is_checked=is_checked
    )


def mapping_item(
    workspace: Workspace, outline: Workspace, name: str, *, is_checked: bool, is_traced: bool
) -> Item:
    """Return a mapping with the columns of its frame, which is built over inputs without rows."""
    mapping = workspace.mapping(name)
    assert isinstance(mapping, MappingModel)  # noqa: S101 - as is every registered kind
    fields, note = _try(lambda: outline.fields(name))
    columns = [_column(each) for each in fields]
    if fields and is_traced:
        sources, unknown = _sources(outline, mapping)
        note = note or unknown
        columns = [replace(column, sources=sources.get(column.name, ())) for column in columns]
    relations = [Ref("relation", each.name) for each in mapping.references() if each.category == "relation"]
    inputs, _ = _try(lambda: mapping.inputs(workspace))
    item = Item(
        Ref("mapping", name),
        mapping.kind,
        description=mapping.description,
        facts=tuple(_nonempty({"filter": mapping.filter, "condition": getattr(mapping, "condition", None)})),
        code=getattr(mapping, "sql", None),
        note=note,
        columns=tuple(columns),
        reads=tuple(dict.fromkeys([*relations, *(Ref("mapping", each) for each in inputs)])),
    )
    return _checked(
        workspace, item, mapping.documentation, lambda: workspace.frame(name), is_checked=is_checked
    )


def _sources(
    outline: Workspace, mapping: MappingModel
) -> tuple[Mapping[str, tuple[Source, ...]], str | None]:
    """Return the sources of each column, or why they are not known."""
    try:
        found = column_sources(outline, mapping.name)
    except Exception as error:  # a plan that cannot be read must not cost the rest of the page
        return {}, message_of(error, "while the sources of its columns were looked for")
    return ({}, _NO_PLAN) if found is None else (found, None)


def target_item(workspace: Workspace, target: Target, *, is_checked: bool) -> Item:
    """Return a target; its checks apply to the relation that it writes."""
    documentation = target.documentation
    item = Item(
        Ref("target", target.name),
        target.kind,
        description=target.description,
        facts=tuple(_target_facts(target)),
        columns=tuple(Column(each.name) for each in (documentation or _NOTHING).columns),
    )

    def read() -> DataFrame:
        if isinstance(target, WritingTarget):
            return target.output(workspace).read(workspace)
        raise TargetError(
            f"a target of kind {target.kind} has no rows of its own to check",
            remedy="Declare the checks with the relation or mapping.",
        )

    return _checked(workspace, item, documentation, read, is_checked=is_checked)


def _checked(
    workspace: Workspace,
    item: Item,
    documentation: Documentation | None,
    read: Callable[[], DataFrame],
    *,
    is_checked: bool,
) -> Item:
    """Return an item with what its documentation block says, and the results of its checks.

    Documented columns that the item lacks are added, and marked. Checks run here if `is_checked`.
    """
    if documentation is None:
        return item
    of_column = [(column.name, column.checks) for column in documentation.columns]
    requests = [
        CheckRequest(check, column)
        for column, checks in [(None, documentation.checks), *of_column]
        for check in checks
        if isinstance(check, Check)
    ]
    run = partial(run_checks, workspace, read) if is_checked and requests else partial(map, check_not_run)
    results: dict[str, list[CheckResult]] = defaultdict(list)
    for result in run(requests):
        results[(result.column or "").lower()].append(result)
    return replace(
        item,
        description=documentation.description or item.description,
        columns=tuple(_documented(item.columns, documentation, results)),
        checks=tuple(results[""]),
    )


def _documented(
    columns: Sequence[Column], documentation: Documentation, results: Mapping[str, list[CheckResult]]
) -> Iterator[Column]:
    """Yield columns with what their documentation says, and the results of their checks by their names."""
    documented = {each.name.lower(): each for each in documentation.columns}
    known = {column.name.lower() for column in columns}
    # Where no column is known, those that are documented may well exist.
    marks = ("does not exist",) if known else ()
    added = (Column(each.name, marks=marks) for name, each in documented.items() if name not in known)
    for column in (*columns, *added):
        own = documented.get(column.name.lower())
        if own is None:
            yield column
        else:
            checks = tuple(results.get(column.name.lower(), ()))
            yield replace(column, description=own.description or column.description, checks=checks)


def _try(find: Callable[[], Sequence[Any]]) -> tuple[Sequence[Any], str | None]:
    """Return what `find` returns, or nothing and the error message."""
    try:
        return find(), None
    except Exception as error:  # Spark raises errors of many types
        return (), message_of(error, "while it was documented")


def _column(declared: Field) -> Column:
    return Column(
        declared.name, declared.type.ddl, nullable=declared.nullable, description=declared.description
    )


def _relation_facts(workspace: Workspace, relation: Relation) -> Iterable[tuple[str, str]]:
    names = [getattr(relation, key, None) for key in ("database", "table")]
    yield from _nonempty(
        {
            "stored in": ", ".join(
                sorted(each.name for each in _try(lambda: tuple(relation.resources(workspace)))[0])
            ),
            "table": ".".join(filter(None, names)) if names[1] else None,
            "view": getattr(relation, "view", None),
            "format": getattr(relation, "format", None),
            "partitioned by": ", ".join(each.name for each in relation.partitions),
            "pattern": getattr(relation, "pattern", None),
        }
    )


def _target_facts(target: Target) -> Iterable[tuple[str, str]]:
    mode = getattr(target, "mode", None)
    partition = getattr(target, "partition", None) or {}
    yield from _nonempty(
        {
            "phases": ", ".join(phase.value for phase in Phase if phase in target.phases()),
            "mode": getattr(mode, "value", mode),
            "partition": ", ".join(f"{name}={value}" for name, value in dict(partition).items()),
            "build policy": target.build_policy.value if target.build_policy else None,
            "before": ", ".join(target.before),
            "after": ", ".join(target.after),
            "enabled": None if target.enabled else "no",
        }
    )


def _nonempty(facts: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    return ((name, " ".join(str(value).split())) for name, value in facts.items() if value not in (None, ""))


def entity_item(context: Context, name: str) -> Item:
    """Return an entity with the columns of its silver table; without a table, with its declared columns."""
    entity = context.workspace.entity(name)
    present, note = _silver_columns(context, entity)
    return Item(
        Ref("entity", name),
        entity.strategy.value,
        description=entity.description,
        facts=tuple(_facts(context, entity)),
        code="\n".join(_transformations(entity)) or None,
        note=note,
        columns=tuple(_columns(context, entity, present)),
    )


def _silver_columns(context: Context, entity: Entity) -> tuple[tuple[Field, ...], str | None]:
    lake = context.workspace.lake
    try:
        state = observe_table(lake, entity.places(lake.settings).silver)
    except LakewrightError as error:
        return (), error.message
    return state.columns, None if state.exists else "has no table yet: the first slice creates it"


def _columns(context: Context, entity: Entity, present: Iterable[Field]) -> Iterable[Column]:
    declared = {column.silver.lower(): column for column in entity.columns}
    prefix = context.workspace.lake.settings.systemfield_prefix
    system = {each.lower() for each in SystemColumns(prefix, entity.destination).all}
    found = list(map(_column, present)) or [
        Column(each.silver, each.type.ddl if each.type else "", description=each.description)
        for each in entity.columns
    ]
    for column in found:
        own = declared.get(column.name.lower())
        if own is not None:
            description = own.description or column.description
            source = None if own.is_calculated or own.source == own.silver else own.source
            marks = tuple(_marks(entity, own, source))
            yield replace(column, marks=marks, source=source, made=own.expression, description=description)
        else:
            yield replace(column, marks=("system",) if column.name.lower() in system else ())


def _marks(entity: Entity, column: DeclaredColumn, source: str | None) -> Iterable[str]:
    if column.is_business_key:
        yield "business key"
    if column.is_partition:
        yield "partition"
    if column.is_calculated:
        yield "calculated"
    if source is not None:
        yield f"from {source}"
    if any(mark.column_name in (column.source, column.result) for mark in entity.watermarks):
        yield "watermark"


def _facts(context: Context, entity: Entity) -> Iterable[tuple[str, str]]:
    places = entity.places(context.workspace.lake.settings)
    yield "strategy", entity.strategy.value
    yield "business key", ", ".join(each.silver for each in entity.columns if each.is_business_key) or "none"
    yield "connection", entity.connection
    yield "slices in", places.bronze_table or places.slices.pattern
    yield "table", str(places.silver)
    application = application_of(context.workspace.project.name, entity)
    last = Watermarks(context.ledger.store).last(application)
    for mark in entity.watermarks:
        value = last.get(mark.column_name)
        yield f"watermark {mark.column_name}", "none yet" if value is None else str(value.python)
    if entity.settings.delete_missing:
        yield "missing records", f"are soft-deleted ({entity.settings.delete_scope})"
    items = context.ledger.store.select(Query(application=application))
    counts = Counter(item.verdict(application) for item in items)
    summary = ", ".join(
        f"{counts[verdict]} {verdict.value.lower()}" for verdict in Verdict if counts[verdict]
    )
    yield "slices", summary or "none seen yet"
    if not entity.enabled:
        yield "enabled", "no"


def _transformations(entity: Entity) -> Iterable[str]:
    for step in entity.transformations:
        if step.column:
            yield f"{step.column} = {step.expression}"
        else:
            yield f"SELECT {', '.join(step.select)}"
