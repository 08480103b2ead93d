"""Faults of Spark's SQL that are found without Spark, by parsing it with `sqlglot`.

Importing the parser takes longer than all the rest of `validate`, so the results are kept by the hash of
what they depend on, and a text is parsed once: docs/decisions/012-tables-in-queries.md.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lakewright.errors import LakewrightError
from lakewright.lake.files import LocalFiles
from lakewright.manifest.plain_values import of_json
from lakewright.spec.suggestions import meant
from lakewright.workspace.query import all_rows, table_resource
from lakewright.workspace.readable_parts import ReadableRelation
from lakewright.workspace.sql_tables import table_names

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

    from lakewright.plan.resource import Resource
    from lakewright.workspace.workspace import Workspace


ColumnsOf = Callable[[str], Sequence[str] | None]
"""Returns the columns of a table with a name of one part, or None if they are not known."""
ColumnsOfTable = Callable[[Sequence[str]], Sequence[str] | None]
"""Returns the columns of a table with a name of these parts, or None if they are not known."""
MOST_KEPT = 2_000
"""The number of results that are kept: more than the texts of a large project, and less than a megabyte."""
_RULES = 3
"""Raised when the checks here change, so that kept results are not used any more."""
_METADATA = "_metadata"
"""A column that Spark gives to all tables of files."""


@dataclass(frozen=True, slots=True)
class SqlAnalysis:
    """What is known of a query without Spark.

    Attributes:
        unparsed: Why the parser rejects it. Spark may still accept it.
        unknown: Columns that its tables don't have, each with a remedy or None.
        columns: The columns of the result, or None if they are not known.
    """

    unparsed: str | None = None
    unknown: tuple[tuple[str, str | None], ...] = ()
    columns: tuple[str, ...] | None = None


@dataclass(slots=True)
class SqlChecker:
    """Analyses queries, and keeps the results in a file.

    Attributes:
        file: The file with kept results; it need not exist, and need not be writable. None keeps nothing.
    """

    file: Path | None
    _kept: dict[str, Any] | None = None
    _used: dict[str, Any] = field(default_factory=dict)
    _is_changed: bool = False
    _tables: WeakKeyDictionary[Workspace, DeclaredTables] = field(default_factory=WeakKeyDictionary)

    def analyse(self, query: str, columns_of: ColumnsOf, of_table: ColumnsOfTable) -> SqlAnalysis:
        """Return the analysis of a query.

        Args:
            query: The query.
            columns_of: Knows the columns of mappings, which have names of one part.
            of_table: Knows the columns of tables of the catalog, and paths, with names of several parts.
        """
        tables = {}
        for parts in sorted(set(table_names(query))):
            columns = columns_of(parts[0]) if len(parts) == 1 else of_table(parts)
            if columns is not None:
                tables[_key(parts)] = columns
        key = sha256(
            json.dumps([_RULES, version("sqlglot"), query, sorted(tables.items())]).encode()
        ).hexdigest()
        found = self._read().get(key)
        if found is None:
            found = asdict(_analyse(query, tables))
            self._is_changed = True
        self._used[key] = found
        return of_json(SqlAnalysis, found)

    def tables_of(self, workspace: Workspace) -> DeclaredTables:
        """Return the tables that the relations of a workspace declare, which are looked up once."""
        return self._tables.setdefault(workspace, DeclaredTables(workspace))

    def save(self) -> None:
        """Write new results to the file, if it can be written."""
        if not self._is_changed or self.file is None:
            return
        kept = {**self._read(), **self._used}
        newest = dict(list(kept.items())[-MOST_KEPT:])
        with suppress(OSError):
            LocalFiles().write(str(self.file), json.dumps(newest).encode())

    def _read(self) -> dict[str, Any]:
        if self._kept is None:
            self._kept = {}
            with suppress(OSError, ValueError):
                found = {} if self.file is None else json.loads(self.file.read_text("utf-8"))
                self._kept = found if isinstance(found, dict) else {}
        return self._kept


def _analyse(query: str, tables: Mapping[str, Sequence[str]]) -> SqlAnalysis:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it logs what it treats as an opaque command
    try:
        parsed = sqlglot.parse(query, dialect="spark")
    except SqlglotError as error:
        return SqlAnalysis(unparsed=_reason(error))
    except RecursionError:
        return SqlAnalysis(unparsed="it is nested too deep")
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query):
        return SqlAnalysis(unparsed="it is not one query")
    try:
        return _resolved(parsed[0], tables)
    except (SqlglotError, RecursionError):
        return SqlAnalysis()


def _key(parts: Sequence[str]) -> str:
    return "\0".join(parts).lower()


def _reason(error: Any) -> str:
    first = (getattr(error, "errors", None) or [{}])[0]
    if not first.get("description"):
        return str(error).partition("\n")[0]
    rest = " ".join(f"{first['highlight']}{first['end_context'][:30]}".split())
    why = first["description"] if "<class" not in first["description"] else "something is missing"
    return f"{why.lower()} in line {first['line']}, at {rest!r}"


def _resolved(query: exp.Query, tables: Mapping[str, Sequence[str]]) -> SqlAnalysis:
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    results: dict[int, tuple[str, ...] | None] = {}
    unknown: dict[str, tuple[str, str | None]] = {}
    for scope in traverse_scope(query):
        sources = {name.lower(): _columns(source, tables, results) for name, source in scope.sources.items()}
        results[id(scope.expression)] = _result(scope, sources)
        if not isinstance(scope.expression, exp.Select):
            continue
        outer = _outer_names(scope, tables, results)
        for name, remedy in _unknown(scope, scope.expression, sources, outer):
            unknown.setdefault(name.lower(), (name, remedy))  # case does not count
    return SqlAnalysis(unknown=tuple(unknown.values()), columns=results.get(id(query)))


def _columns(
    source: Any, tables: Mapping[str, Sequence[str]], results: Mapping[int, tuple[str, ...] | None]
) -> Sequence[str] | None:
    """Return the columns of a table or of a query inside the query, or None if they are not known."""
    from sqlglot import exp

    if isinstance(source, exp.Table):
        is_plain = isinstance(source.this, exp.Identifier)
        aliased = source.args.get("alias")
        renames = aliased is not None and bool(aliased.columns)
        parts = [part for part in (source.catalog, source.db, source.name) if part]
        return None if renames or not is_plain else tables.get(_key(parts))
    if source.expression.parent is not None and source.expression.parent.alias_column_names:
        return tuple(source.expression.parent.alias_column_names)
    return results.get(id(source.expression))


def _result(scope: Scope, sources: Mapping[str, Sequence[str] | None]) -> tuple[str, ...] | None:
    from sqlglot import exp

    if not isinstance(scope.expression, exp.Select):
        return None
    found: list[str] = []
    for item in scope.expression.selects:
        if isinstance(item, exp.Star) and not item.args.get("except_") and not item.args.get("replace"):
            of_sources = [sources.get(name.lower()) for name in scope.selected_sources]
            if scope.expression.args.get("joins") or any(columns is None for columns in of_sources):
                return None
            found += [name for columns in of_sources for name in columns or ()]
        elif item.output_name and not item.is_star:
            found.append(item.output_name)
        else:
            return None
    return tuple(found)


def _outer_names(
    scope: Scope, tables: Mapping[str, Sequence[str]], results: Mapping[int, tuple[str, ...] | None]
) -> frozenset[str]:
    """Return the names of the tables around a subquery, and of their columns as far as they are known."""
    names: set[str] = set()
    while scope.parent is not None:
        is_inside = scope.is_subquery or scope.is_udtf  # a CTE does not see the tables of its query
        for name, source in scope.parent.sources.items() if is_inside else ():
            names |= {name.lower(), *map(str.lower, _columns(source, tables, results) or ())}
        scope = scope.parent
    return frozenset(names)


def _unknown(
    scope: Scope, query: exp.Select, sources: Mapping[str, Sequence[str] | None], outer: frozenset[str]
) -> Iterator[tuple[str, str | None]]:
    """Yield the columns that no table of a SELECT has, as far as the columns of its tables are known.

    If there are other names, such as those of LATERAL VIEW, only columns with a table are looked at.
    """
    made = _made_names(query)
    if made is None:
        return
    known = {
        name: {column.lower() for column in columns}
        for name, columns in sources.items()
        if columns is not None
    }
    own = {item.alias.lower() for item in query.selects if item.alias}
    names = {column for columns in sources.values() for column in columns or ()}
    is_plain = not query.find(*_making()) and not scope.is_correlated_subquery
    anywhere = own.union(*known.values()) if is_plain and len(known) == len(sources) > 0 else None
    # `c.total` is the field of a column c, if there is one and the table c has no such column.
    shadows = own.union(made, outer, *known.values())
    for column in scope.columns:
        # A scope also lists the columns of its subqueries that may be its own.
        if not column.name or column.parent_select is not query:
            continue
        parts = [part.name for part in column.parts]
        place = _table_in(parts, scope)
        if place is not None:
            table, name = parts[place], parts[place + 1]
            is_known = table.lower() not in known or name.lower() in known[table.lower()]
            if not is_known and parts[0].lower() not in shadows and name.lower() != _METADATA:
                yield f"{table}.{name}", meant(name, sources[table.lower()] or ())
        elif len(parts) == 1 and anywhere is not None and parts[0].lower() not in {*anywhere, _METADATA}:
            yield parts[0], meant(parts[0], names)


def _table_in(parts: Sequence[str], scope: Scope) -> int | None:
    """Return which part of a column's name is its table, as in `shop.orders.id` and `orders.customer.id`."""
    from sqlglot import exp

    sources = {name.lower(): source for name, source in scope.sources.items()}
    for place in range(len(parts) - 2, -1, -1):
        source = sources.get(parts[place].lower())
        if place and isinstance(source, exp.Table):
            qualified = [part.lower() for part in (source.catalog, source.db) if part]
            if qualified[-place:] == [part.lower() for part in parts[:place]]:
                return place
    return 0 if len(parts) > 1 and parts[0].lower() in sources else None


def _making() -> tuple[type[exp.Expr], ...]:
    """Return what makes names in a SELECT that are columns of no table."""
    from sqlglot import exp

    return exp.Lateral, exp.Unnest, exp.Pivot, exp.Lambda, exp.Values


def _made_names(query: exp.Select) -> frozenset[str] | None:
    """Return the names in a SELECT that are columns of no table, or None if they are not known."""
    from sqlglot import exp

    names: set[str] = set()
    for part in query.find_all(*_making()):
        if isinstance(part, exp.Pivot):
            return None
        if isinstance(part, exp.Lambda):
            names |= {name.name.lower() for name in part.expressions}
        elif part.alias_column_names:
            names |= {name.lower() for name in part.alias_column_names}
        elif isinstance(part.this, exp.Explode):  # of which `posexplode` is one
            names |= {"pos", "col", "key", "value"}
        elif not isinstance(part, exp.Values):
            return None
    return frozenset(names)


class DeclaredTables:
    """The relations of a workspace by the table of the catalog, or the path, by which a query names them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._relations: dict[Resource, list[ReadableRelation]] | None = None
        self._columns: dict[Resource, tuple[str, ...] | None] = {}

    def relations(self, parts: Sequence[str]) -> Sequence[ReadableRelation]:
        """Return the relations whose table has a name of these parts."""
        if self._relations is None:
            self._relations = {}
            for name in self.workspace.project.relations:
                self._add(name, self._relations)
        return self._relations.get(table_resource(parts), ())

    def columns(self, parts: Sequence[str]) -> Sequence[str] | None:
        """Return the declared columns of the table with a name of these parts; None if they are not known."""
        table = table_resource(parts)
        if table not in self._columns:
            found = [_declared(each, self.workspace) for each in self.relations(parts)]
            known = [names for names in found if names is not None]
            is_known = bool(found) and len(known) == len(found)
            self._columns[table] = tuple(dict.fromkeys(sum(known, ()))) if is_known else None
        return self._columns[table]

    def _add(self, name: str, found: dict[Resource, list[ReadableRelation]]) -> None:
        try:
            relation = self.workspace.relation(name)
            table = relation.table_sql(self.workspace)
        except LakewrightError:  # it has a fault of its own
            return
        if table is not None and not table.startswith("("):  # a query has no name
            for parts in table_names(all_rows(table)):
                found.setdefault(table_resource(parts), []).append(relation)


def _declared(relation: ReadableRelation, workspace: Workspace) -> tuple[str, ...] | None:
    schema = getattr(relation, "declared_schema", None)
    if schema is None or schema.mappings():  # only Spark knows the columns of a mapping
        return None
    try:
        return tuple(field.name for field in relation.fields(workspace))
    except LakewrightError:
        return None
