"""The flow of data between the items of a project, and the columns that each column is computed from.

Both follow from the declarations alone; expressions get stand-ins for a job's parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.app import App
from lakewright.documentation.document import Ref, Source, origins_of
from lakewright.documentation.gathering.gather import DataFlow, declared_flow
from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.mappings.columns import SelectMapping
from lakewright.mappings.rows import FilterMapping
from lakewright.mappings.sources import RelationMapping
from lakewright.mappings.sql import SqlMapping
from lakewright.schema.sql import name_sql
from lakewright.targets.target import Target
from lakewright.usecases.declared_nodes import offline_lake, sampled_jobs
from lakewright.workspace.workspace import Workspace

MOST_NODES = 300
"""With more items than this, mappings are left out, and those that read them read what they read."""


@dataclass(frozen=True, slots=True)
class Flows:
    """What flows where.

    Attributes:
        nodes: All entities, relations and targets, and the mappings unless there are too many.
        edges: From an item to one that reads it, or that it writes.
        writers: For each entity that is written by one target alone, this target, which is no node itself.
    """

    nodes: tuple[Ref, ...]
    edges: tuple[tuple[Ref, Ref], ...]
    writers: dict[str, str]

    def around(self, focus: Ref) -> Flows:
        """Return the part from which an item is made, and that is made from it."""
        kept = {focus} | self._reached(focus, 0) | self._reached(focus, 1)
        return Flows(
            tuple(node for node in self.nodes if node in kept),
            tuple(edge for edge in self.edges if edge[0] in kept and edge[1] in kept),
            self.writers,
        )

    def _reached(self, focus: Ref, end: int) -> set[Ref]:
        found: set[Ref] = set()
        border = {focus}
        while border:
            border = {edge[end] for edge in self.edges if edge[1 - end] in border} - found - {focus}
            found |= border
        return found


def read_flows(app: App) -> Flows:
    """Return the flow of data in a project."""
    project = app.project
    workspace = declared_workspace(app)
    edges: dict[tuple[Ref, Ref], None] = {}
    writers: dict[str, str] = {}
    for target, reads, writes in _targets(workspace):
        is_alone = len(writes) == 1 and writes[0].category == "entity"
        via = writes[0] if is_alone else Ref("target", target)
        if is_alone:
            writers[writes[0].name] = target
        edges.update(dict.fromkeys((ref, via) for ref in reads if ref != via))
        edges.update(dict.fromkeys((via, ref) for ref in writes if ref != via))
    for name, definition in project.relations.items():
        if definition.kind == "entity":
            edges[Ref("entity", str(definition.raw.get("entity"))), Ref("relation", name)] = None
    for name, definition in project.mappings.items():
        reads, _ = declared_flow(definition.check()[0])
        edges.update(dict.fromkeys((ref, Ref("mapping", name)) for ref in reads))
    nodes = [
        *(Ref("relation", name) for name in project.relations),
        *(Ref("mapping", name) for name in project.mappings),
        *(Ref("entity", name) for name in project.entities),
        *(Ref("target", name) for name in project.targets if name not in writers.values()),
    ]
    known = set(nodes)
    flows = Flows(tuple(nodes), tuple(e for e in edges if e[0] in known and e[1] in known), writers)
    return flows if len(nodes) <= MOST_NODES else _without_mappings(flows)


def declared_workspace(app: App) -> Workspace:
    """Return the workspace of a job with stand-ins for its parameters, in which nothing starts Spark."""
    lake = offline_lake(app.project)
    sampled = (workspace for _, workspace, _ in sampled_jobs(app.project, lake))
    return next(sampled, Workspace(app.project, app.project.scope, lake))


def _targets(workspace: Workspace) -> Iterator[tuple[str, tuple[Ref, ...], tuple[Ref, ...]]]:
    flow = DataFlow(workspace)
    for name, definition in workspace.project.targets.items():
        try:
            reads, writes = flow.of(Target.named(workspace, name))
        except Exception:  # an expression without its value, or what only Spark knows
            reads, writes = declared_flow(definition.check()[0])
        yield name, reads, writes


def _without_mappings(flows: Flows) -> Flows:
    """Return the flow in which those that read a mapping read what it reads."""
    edges = list(flows.edges)
    for mapping in (node for node in flows.nodes if node.category == "mapping"):
        sources = [a for a, b in edges if b == mapping]
        readers = [b for a, b in edges if a == mapping]
        edges = [edge for edge in edges if mapping not in edge]
        edges += [(a, b) for a in sources for b in readers if a != b]
    kept = tuple(node for node in flows.nodes if node.category != "mapping")
    return Flows(kept, tuple(dict.fromkeys(edges)), flows.writers)


Columns = Mapping[str, tuple[Source, ...]]
"""The columns of an item, each with its sources."""

ASK_SPARK = Phrase(Command("docs"), " shows the columns of every mapping: it asks Spark.")


@dataclass(frozen=True, slots=True)
class ColumnFlow:
    """The columns of an item.

    Attributes:
        columns: Its columns with those of relations and entities that they are computed from.
        note: Why they are not known; None if they are.
    """

    columns: Columns = field(default_factory=dict)
    note: str | None = None


class _Unknown(Exception):
    """The columns of an item can't be known without Spark."""


def read_column_flow(app: App, item: Ref) -> ColumnFlow:
    """Return the columns of a relation or a mapping, as far as they are known without Spark."""
    tracer = _Tracer(declared_workspace(app))
    try:
        if item.category == "mapping":
            return ColumnFlow(tracer.mapping(item.name))
        writer = next(_writers(app, item.name), None)
        if writer is not None:
            return ColumnFlow(tracer.mapping(writer))
        definition = app.project.relations.get(item.name)
        is_of_entity = definition is not None and definition.kind == "entity"
        entity = Ref("entity", str(definition.raw.get("entity"))) if definition and is_of_entity else None
        names = tracer.relation(item.name)
        return ColumnFlow({name: () if entity is None else (Source(entity, name),) for name in names})
    except _Unknown as why:
        return ColumnFlow(note=Phrase(f"{why} ", ASK_SPARK))


def _writers(app: App, relation: str) -> Iterator[str]:
    """Yield the mappings whose rows targets write into a relation."""
    for definition in app.project.targets.values():
        mapping, written = (definition.raw.get(key) for key in ("mapping", "relation"))
        if definition.kind == "relation" and written == relation and isinstance(mapping, str):
            yield mapping


@dataclass(slots=True)
class _Tracer:
    """Traces the columns of mappings back to those of relations."""

    workspace: Workspace
    _direct: dict[str, Columns] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def mapping(self, name: str) -> Columns:
        """Return the columns of a mapping, each with those of relations that it is computed from.

        Raises:
            _Unknown: Its kind is not traced, or what it reads is not known.
        """
        ref = Ref("mapping", name)
        return {each: origins_of(Source(ref, each), self._behind) for each in self.direct(name)}

    def _behind(self, source: Source) -> tuple[Source, ...]:
        columns = self.direct(source.item.name) if source.item.category == "mapping" else {}
        return next((found for name, found in columns.items() if name.lower() == source.column.lower()), ())

    def relation(self, name: str) -> tuple[str, ...]:
        """Return the columns of a relation.

        Raises:
            _Unknown: Only Spark knows them.
        """
        try:
            return tuple(each.name for each in self.workspace.relation(name).fields(self.workspace))
        except Exception as error:  # whatever its kind needs is not here
            raise _Unknown(f"The columns of the relation {name} are not known without Spark.") from error

    def direct(self, name: str) -> Columns:
        """Return the columns of a mapping, each with those that it is computed from directly.

        Raises:
            _Unknown: Its kind is not traced, or what it reads is not known.
        """
        if name in self._open:
            raise _Unknown(f"The mapping {name} reads itself.")
        if name not in self._direct:
            self._open.append(name)
            try:
                self._direct[name] = self._traced(name)
            except LakewrightError as error:
                raise _Unknown(f"The mapping {name} can't be evaluated here: {error.message}.") from error
            finally:
                self._open.pop()
        return self._direct[name]

    def _traced(self, name: str) -> Columns:
        mapping = self.workspace.mapping(name)
        if isinstance(mapping, RelationMapping):
            if not isinstance(mapping.relation, str):
                raise _Unknown("A relation without a name is not traced.")
            return _same(
                Ref("relation", mapping.relation), mapping.columns or self.relation(mapping.relation)
            )
        if isinstance(mapping, FilterMapping) and mapping.filter is None:
            return _same(Ref("mapping", mapping.input), self.direct(mapping.input))
        if isinstance(mapping, SelectMapping) and mapping.filter is None:
            selected = ", ".join(f"{text} AS {name_sql(own)}" for own, text in mapping.columns.items())
            query = f"SELECT {selected} FROM {name_sql(mapping.input)}"  # noqa: S608 - it is only parsed
            return self._of_query(name, query, (mapping.input,))
        if isinstance(mapping, SqlMapping):
            return self._of_query(name, mapping.query(self.workspace), mapping.inputs(self.workspace))
        kind = getattr(mapping, "kind", "?")
        raise _Unknown(f"Mappings of kind {kind} such as {name} are not traced without Spark.")

    def _of_query(self, name: str, query: str, inputs: Sequence[str]) -> Columns:
        tables = {each.lower(): each for each in inputs}
        columns = {table: tuple(self.direct(each)) for table, each in tables.items()}
        try:
            return {
                column: tuple(Source(Ref("mapping", tables[table.lower()]), of) for table, of in sources)
                for column, sources in _resolve(query, columns).items()
            }
        except Exception as error:  # the parser knows less than Spark
            raise _Unknown(f"The SQL of {name} can't be traced without Spark.") from error


def _same(ref: Ref, names: Iterable[str]) -> Columns:
    return {each: (Source(ref, each),) for each in names}


def _resolve(query: str, tables: Mapping[str, Sequence[str]]) -> dict[str, list[tuple[str, str]]]:
    """Return the columns of a query, each with the columns of tables that it is computed from.

    Example:
        >>> _resolve("SELECT a.x + b.y AS z, 1 AS one FROM a JOIN b ON a.k = b.k", {"a": "xk", "b": "yk"})
        {'z': [('a', 'x'), ('b', 'y')], 'one': []}
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.lineage import lineage
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import build_scope

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    schema: dict[str, object] = {table: dict.fromkeys(columns, "string") for table, columns in tables.items()}
    qualified = qualify(sqlglot.parse_one(query, dialect="spark"), schema=schema, dialect="spark")
    if not isinstance(qualified, exp.Query):
        raise ValueError("it is not one query")
    scope = build_scope(qualified)
    found: dict[str, list[tuple[str, str]]] = {}
    for column in qualified.named_selects:
        tree = lineage(column, qualified, schema=schema, dialect="spark", scope=scope, copy=False)
        leaves = (node for node in tree.walk() if not node.downstream and isinstance(node.source, exp.Table))
        named = [(node.source.name, exp.to_column(node.name).name) for node in leaves]
        found[column] = sorted(dict.fromkeys(named))
    return found
