"""Check the SQL of evaluated definitions by parsing it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from lakewright.errors import Fault, LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.mappings.mapping import Mapping
from lakewright.mappings.sql import SqlMapping
from lakewright.relations.catalog import ViewRelation
from lakewright.spec.models.text_marks import SqlText, marked_texts
from lakewright.spec.suggestions import suggestion, way_to_read
from lakewright.targets.relation import MergeTarget
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.workspace.query import mapping_names
from lakewright.workspace.sql_check import SqlChecker
from lakewright.workspace.workspace import Workspace

_THIS = "__this__"
"""The table of a check's query, and of texts whose table has no name."""

_SOURCE, _TARGET = "__source__", "__target__"
_MERGED = f"{_SOURCE} AS source CROSS JOIN {_TARGET} AS target"
"""The tables over which the SQL of a merge is evaluated."""


def check_sql(evaluation: Evaluation, columns: Columns) -> None:
    """Report the faults in the SQL of all evaluated definitions.

    Errors are mappings that don't exist, and texts that the parser and Spark reject. Warnings are other texts
    that the parser rejects, and columns that the tables' declarations don't have: Spark knows more than the
    parser, and a table may have more columns than are declared.
    """
    for each in evaluation.evaluated:
        if each.definition.category != "connection":
            _check(each, columns.of(each.workspace), evaluation)


def _check(each: Evaluated, columns: MappingColumns, evaluation: Evaluation) -> None:
    for mark, text, path in _texts(each):
        if mark is SqlText.QUERY and not isinstance(each.model, ViewRelation):
            evaluation.report(_unknown_mappings(each, text, path), is_error=True)
        own = _own_tables(each, mark, columns)
        # All names in the text of a view are those of tables.
        of_name = columns.of_plain_table if isinstance(each.model, ViewRelation) else columns.of
        found = columns.checker.analyse(
            mark.as_query(text, _MERGED if isinstance(each.model, MergeTarget) else _THIS),
            lambda name, own=own, of_name=of_name: own[name] if name in own else of_name(name),  # type: ignore[misc]
            columns.of_table,
        )
        if found.unparsed is not None:
            why = f"the SQL {_shortened(text)!r} can't be parsed: {found.unparsed}"
            is_wrong, asks_spark = (
                _is_surely_wrong(mark, text),
                Phrase(Command("validate", "--spark"), " asks Spark."),
            )
            remedy = "Correct it: Spark would reject it, too." if is_wrong else asks_spark
            evaluation.report([each.definition.fault(why, *path, remedy=remedy)], is_error=is_wrong)
        for name, meant in found.unknown:
            why = f"no table of the query declares the column {name!r}"
            evaluation.report([each.definition.fault(why, *path, remedy=meant)], is_error=False)


def _texts(each: Evaluated) -> Iterator[tuple[SqlText, str, tuple[str | int, ...]]]:
    yield from marked_texts(each.model, SqlText)
    if isinstance(each.model, SqlMapping | ViewRelation) and getattr(each.model, "file", None):
        try:
            if not isinstance(each.model, ViewRelation) or each.model.mapping is None:
                yield SqlText.QUERY, each.model.query(each.workspace), ("file",)
        except LakewrightError:
            return  # the file is missing, which evaluating the definition has found


def _is_surely_wrong(mark: SqlText, text: str) -> bool:
    """Return whether Spark rejects a text, too, that the parser rejects.

    Something that is open is not closed, or it begins with no word of SQL.

    Example:
        >>> [_is_surely_wrong(SqlText.QUERY, text) for text in ("selec 1", "SELECT (1", "SELECT new syntax")]
        [True, True, False]
    """
    code = _CLOSED.sub(" ", text)
    depth = 0
    for sign in code:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return True
    is_statement = mark is not SqlText.QUERY or _STATEMENT.match(code) is not None
    return depth != 0 or not is_statement or any(quote in code for quote in "'\"`")


_CLOSED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
"""Texts, names in quotes, and comments."""

_STATEMENT = re.compile(
    r"\W*(select|with|from|values|table|map|reduce|create|drop|alter|insert|update|delete|merge|desc|describe|"
    r"show|explain|set|reset|use|cache|uncache|clear|refresh|analyze|repair|msck|load|add|list|truncate|"
    r"comment|call|execute|declare|begin|copy|optimize|vacuum|restore|replace|if|case|while)\b",
    re.IGNORECASE,
)
"""The words with which a statement of Spark can begin."""


def _unknown_mappings(each: Evaluated, text: str, path: tuple[str | int, ...]) -> Iterator[Fault]:
    project = each.workspace.project
    for name in mapping_names(text):
        home, _, inner = name.partition("/")
        known: Collection[str] = project.mappings
        if inner and home in project.imports:
            known = [f"{home}/{each}" for each in project.imports[home].mappings]
        if name.lower() != _THIS and name not in known:
            remedy = (
                way_to_read(name, project.definitions("relation"))
                or suggestion(name, known)
                or "Declare it in a module, below `mappings`."
            )
            yield each.definition.fault(f"there is no mapping {name!r}", *path, remedy=remedy)


def _own_tables(each: Evaluated, mark: SqlText, columns: MappingColumns) -> dict[str, Sequence[str] | None]:
    """Return the columns of the tables, by the names here, over which a text that names none is evaluated."""
    if not isinstance(each.model, MergeTarget):
        return {_THIS: _input_columns(each, mark, columns)}
    return {_SOURCE: columns.merged(each.model), _TARGET: columns.of_output(each.model)}


def _input_columns(each: Evaluated, mark: SqlText, columns: MappingColumns) -> Sequence[str] | None:
    """Return the columns over which an expression or a condition of a mapping is evaluated."""
    source = getattr(each.model, "input", None)
    is_plain = isinstance(each.model, Mapping) and each.model.filter is None and isinstance(source, str)
    is_closed = (
        is_plain
        and each.model.kind in ("filter", "select", "aggregate", "groupedAggregate")
        and mark is not SqlText.QUERY
    )
    return columns.of(str(source)) if is_closed else None


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:57]}..."


class Columns:
    """The columns that declarations say, as each workspace has them."""

    def __init__(self, checker: SqlChecker) -> None:
        self._checker = checker
        self._known: dict[int, MappingColumns] = {}

    def of(self, workspace: Workspace) -> MappingColumns:
        """Return the columns of a workspace's mappings and tables."""
        return self._known.setdefault(id(workspace), MappingColumns(workspace, self._checker))


class MappingColumns:
    """The columns of mappings and of the project's tables, as far as declarations say them."""

    def __init__(self, workspace: Workspace, checker: SqlChecker) -> None:
        self.workspace = workspace
        self.checker = checker
        self._known: dict[str, Sequence[str] | None] = {}

    def of(self, name: str) -> Sequence[str] | None:
        """Return the columns of a mapping, or None if they are not known."""
        if name not in self._known:
            self._known[name] = None  # what mappings in a cycle see
            self._known[name] = self._declared(name)
        return self._known[name]

    def of_table(self, parts: Sequence[str]) -> Sequence[str] | None:
        """Return the columns of a table of the catalog, or of a path, or None if they are not known."""
        return self.checker.tables_of(self.workspace).columns(parts)

    def of_plain_table(self, name: str) -> Sequence[str] | None:
        """Return the columns of a table whose name has one part, or None if they are not known."""
        return self.of_table((name,))

    def merged(self, target: MergeTarget) -> Sequence[str] | None:
        """Return the columns of the rows that a target merges, or None if they are not known."""
        brought = self.of(str(target.mapping))
        return None if brought is None else (*brought, *target.partition)

    def of_output(self, target: MergeTarget) -> Sequence[str] | None:
        """Return the columns that the relation of a target declares, or None if it declares none."""
        return declared_names(self.workspace, lambda: target.output(self.workspace), with_partitions=True)

    def _declared(self, name: str) -> Sequence[str] | None:
        try:
            mapping = self.workspace.mapping(name)
            if isinstance(mapping, SqlMapping):
                query = mapping.query(self.workspace)
                return self.checker.analyse(query, self.of, self.of_table).columns
            return mapping.declared_columns(self.workspace, self.of) if isinstance(mapping, Mapping) else None
        except LakewrightError:
            return None


def declared_names(
    workspace: Workspace, find: Callable[[], object], *, with_partitions: bool = False
) -> list[str] | None:
    """Return the columns that what a function returns declares; None if they are not known.

    Whatever keeps them from being known is a fault of its own.
    """
    try:
        source = find()
        declare = getattr(source, "declared", None)
        fields = None if declare is None else declare(workspace)
        partitions = getattr(source, "partitions", ()) if with_partitions else ()
    except LakewrightError:
        return None
    return None if fields is None else [field.name for field in (*fields, *partitions)]


def mapping_cycles(evaluation: Evaluation) -> Iterator[Fault]:
    """Yield a fault for each job in which mappings read each other in a cycle.

    Loading finds those whose queries have no expressions.
    """
    graphs: dict[int, dict[str, set[str]]] = {}
    places = {}
    for each in evaluation.evaluated:
        if isinstance(each.model, Mapping):
            places[each.definition.name] = each.definition.at()
            inputs = graphs.setdefault(id(each.workspace), {}).setdefault(each.definition.name, set())
            with suppress(LakewrightError):  # the file of a query is missing
                inputs |= {name.partition(":")[0] for name in each.model.inputs(each.workspace)}
    for graph in graphs.values():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as cycle:
            chain = [str(name) for name in reversed(cycle.args[1])]
            message = f"mappings read each other in a cycle: {' -> '.join(chain)}"
            yield Fault(message, places[chain[0]], "Change one of them to read something else.")
