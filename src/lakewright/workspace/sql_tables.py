"""The tables that a query of Spark's SQL reads, found without Spark.

The order of targets, and which of them are tainted, depend on the inputs of queries before a session starts.
Names defined by WITH, functions, and text in strings and comments aren't tables.

Why this is a scanner and not a parser: docs/decisions/012-tables-in-queries.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.schema.sql import name_sql

_TOKEN = re.compile(
    r"""
      (?P<skip>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<string>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<word>[^\W\d]\w*|\d+[^\W\d]\w*(?!\.\d))
    | (?P<number>\d[\w.]*)
    | (?P<pipe>\|>)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_DATABASE_TOKEN = re.compile(
    r"""
      (?P<skip>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<string>[nNeE]?'(?:[^']|'')*'|(?P<dollar>\$\w*\$).*?(?P=dollar))
    | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*"|\[[^\]\d'"][^\]'"]*\])
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>\d[\w.]*)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Tokens of the SQL of databases, in which double quotes and brackets quote names."""

_AFTER_TABLES = frozenset({"WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "VIEW", "SET", "SELECT"})
_AFTER_QUERY = frozenset({"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"})
_ENDS_OF_FROM = _AFTER_TABLES | _AFTER_QUERY | {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
_AFTER_NAME = _ENDS_OF_FROM | {
    *("ON", "USING", "JOIN", "INNER", "OUTER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL"),
    *("LATERAL", "PIVOT", "UNPIVOT", "TABLESAMPLE", "VERSION", "TIMESTAMP", "FOR", "WITH"),
}
"""Words that follow a table's name and aren't its alias."""
_BEFORE_ALIAS = frozenset({"TABLESAMPLE", "VERSION", "TIMESTAMP", "FOR", "WITH"})
"""Words of clauses that stand between a table's name and its alias."""
_STARTS_OF_QUERY = frozenset({"SELECT", "WITH", "FROM"})
# Words after which a name may stand that isn't a table, or that stand for rows themselves.
_NO_TABLES = frozenset({"VALUES", "NULL", "TRUE", "FALSE", "ONLY"})


def table_names(sql: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of the tables that a query reads, each once, in the order of the text.

    A name is the tuple of its parts: `("people",)`, `("crm", "people")`.

    Example:
        >>> table_names("WITH a AS (SELECT * FROM b) SELECT * FROM a JOIN c.d ON EXTRACT(YEAR FROM t) = 1")
        (('b',), ('c', 'd'))
    """
    return tuple(dict.fromkeys(reference.parts for reference in table_references(sql)))


@dataclass(frozen=True, slots=True)
class TableReference:
    """The name of a table at one place of a query.

    Attributes:
        parts: The parts of the name.
        start: The position of its first character in the query.
        end: The position after its last character.
        may_have_alias: Whether an alias may be written directly after it, and none is.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    may_have_alias: bool


def table_references(sql: str) -> tuple[TableReference, ...]:
    """Return the names of the tables that a query reads, with their places, in the order of the text."""
    return tuple(_Scanner(list(_tokens(sql))).references())


def qualified_names(sql: str) -> Iterator[tuple[tuple[str, str], int, int]]:
    """Yield the first two parts of every name with a dot, of a table or not, with their start and end.

    Example:
        >>> list(qualified_names("SELECT a.b.c FROM d"))
        [(('a', 'b'), 7, 10)]
    """
    tokens = list(_tokens(sql))
    befores = [_Token("end", ""), *tokens]
    for before, first, dot, second in zip(befores, tokens, tokens[1:], tokens[2:], strict=False):
        if dot.text == "." and before.text != "." and first.name is not None and second.name is not None:
            yield (first.name, second.name), first.start, second.end


@dataclass(frozen=True, slots=True)
class WholeName:
    """What a name with dots means in a query.

    Attributes:
        view: The name that stands in its place.
        alias: The name by which the columns of the view are known, too.
    """

    view: str
    alias: str


def with_whole_names(sql: str, names: Mapping[tuple[str, ...], WholeName]) -> str:
    """Return a query with views in place of names with dots, each with its alias.

    A view has no alias if a plain name of the query, or the view of another name, may be meant by it.

    Args:
        sql: The query.
        names: The views, by the parts of the names in lower case.

    Example:
        >>> names = {("a", "old"): WholeName("a.old", "a"), ("b", "old"): WholeName("b.old", "b")}
        >>> with_whole_names("SELECT a.x, b.old.y FROM a.old JOIN b.old", names)
        'SELECT a.x, `b`.y FROM `a.old` AS `a` JOIN `b.old` AS `b`'
    """
    references = {reference.start: reference for reference in table_references(sql)}
    places: dict[int, tuple[tuple[str, ...], int]] = {
        start: (parts, end) for parts, start, end in qualified_names(sql)
    }
    places |= {start: (each.parts, each.end) for start, each in references.items()}
    found = {
        start: (names[key], end)
        for start, (parts, end) in sorted(places.items())
        if (key := tuple(part.lower() for part in parts)) in names
    }
    # Only a column can tell two views of one alias apart; the alias would hide which of them it means.
    columns = {name.alias for name, end in found.values() if sql.startswith(".", end)}
    counts = Counter(name.alias.lower() for name in {name for name, _ in found.values()})
    plain = {each.parts[0].lower() for each in references.values() if len(each.parts) == 1}
    for start, (name, end) in reversed(found.items()):
        written, alias = name_sql(name.view), name_sql(name.alias)
        is_aliased = name.alias.lower() not in plain and (
            counts[name.alias.lower()] == 1 or name.alias not in columns
        )
        if is_aliased and start in references and references[start].may_have_alias:
            written = f"{written} AS {alias}"
        elif is_aliased and sql.startswith(".", end):
            written = alias
        sql = f"{sql[:start]}{written}{sql[end:]}"
    return sql


def database_tables(sql: str, fold: Callable[[str], str] = str) -> tuple[tuple[str, ...], ...]:
    """Return the names of the tables that a query in a database's own SQL reads, each once.

    Args:
        sql: The query.
        fold: Returns the name that the database gives to one that is written without quotes.

    Example:
        >>> database_tables('SELECT "Id" FROM shop."Sales" s JOIN Days USING (day)', str.lower)
        (('shop', 'Sales'), ('days',))
    """
    tokens = [
        _Token("word", fold(token.text)) if token.kind == "word" else token
        for token in _tokens(sql, _DATABASE_TOKEN)
    ]
    return tuple(dict.fromkeys(reference.parts for reference in _Scanner(tokens).references()))


def before_union(sql: str) -> str | None:
    """Return the part of a query before its first UNION, or None if it has none outside of parentheses.

    Example:
        >>> before_union("SELECT (SELECT 1 UNION SELECT 2) AS n UNION ALL SELECT 3")
        'SELECT (SELECT 1 UNION SELECT 2) AS n '
    """
    depth = 0
    for match in _TOKEN.finditer(sql):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        if depth == 0 and match.lastgroup == "word" and match.group().upper() == "UNION":
            return sql[: match.start()]
    return None


@dataclass(frozen=True, slots=True)
class _Token:
    """A token of a query.

    Attributes:
        kind: The group of `_TOKEN` that matched it.
        text: As written.
        start: The position of its first character.
    """

    kind: str
    text: str
    start: int = 0

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """The word in upper case, or the mark; empty for quoted names and strings."""
        if self.kind == "word":
            return self.text.upper()
        return self.text if self.kind in {"mark", "pipe"} else ""

    @property
    def name(self) -> str | None:
        """The name without quotes, or None if the token can't be a name."""
        if self.kind == "quoted":
            quote = self.text[-1]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text if self.kind == "word" else None


@dataclass(slots=True)
class _Frame:
    """The state of the scan between one pair of parentheses, or outside all of them.

    Attributes:
        is_query: Whether it is a query or a list of tables; otherwise FROM belongs to a function, as in
            `trim(BOTH ' ' FROM name)`.
        expects_table: Whether the next name is a table.
        is_in_from: Whether a comma is followed by one more table.
        is_in_with: Whether the definitions of a WITH follow.
        is_recursive: Whether these definitions may read themselves.
        defining: The name whose definition is being read, in lower case.
        defined: Names that the WITH has defined so far, in lower case.
    """

    is_query: bool
    expects_table: bool = False
    is_in_from: bool = False
    is_in_with: bool = False
    is_recursive: bool = False
    defining: str | None = None
    defined: set[str] = field(default_factory=set)


def _tokens(sql: str, token: re.Pattern[str] = _TOKEN) -> Iterator[_Token]:
    for match in token.finditer(sql):
        if match.lastgroup != "skip":
            yield _Token(str(match.lastgroup), match.group(), match.start())


class _Scanner:
    """Scans the tokens of a query once, with a stack of frames for its parentheses."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.frames = [_Frame(is_query=True)]

    def references(self) -> Iterator[TableReference]:
        """Yield the name of each table, in the order of the text."""
        while self.position < len(self.tokens):
            reference = self._step()
            if reference is not None:
                yield reference

    def _peek(self, offset: int = 0) -> _Token:
        index = self.position + offset
        return self.tokens[index] if 0 <= index < len(self.tokens) else _Token("end", "")

    def _step(self) -> TableReference | None:
        token, frame = self._peek(), self.frames[-1]
        if token.keyword == "(":
            self._open(frame)
        elif token.keyword == ")":
            self._close()
        elif frame.is_in_with and self._starts_definition():
            frame.defining = (token.name or "").lower()
            if frame.is_recursive:
                frame.defined.add(frame.defining)
        elif frame.expects_table and self._is_table(token):
            return self._take_table(frame)
        else:
            self._note_keyword(token, frame)
        self.position += 1
        return None

    def _open(self, frame: _Frame) -> None:
        first = self._peek(1).keyword
        is_query = first in _STARTS_OF_QUERY
        is_tables = frame.expects_table and not is_query
        self.frames.append(_Frame(is_query=is_query, expects_table=is_tables, is_in_from=is_tables))
        frame.expects_table = False

    def _close(self) -> None:
        if len(self.frames) > 1:
            self.frames.pop()
        frame = self.frames[-1]
        if frame.defining is not None and self._peek(1).keyword != "AS":
            frame.defined.add(frame.defining)
            frame.defining = None

    def _starts_definition(self) -> bool:
        is_name = self._peek().name is not None
        before = self._peek(-1).keyword
        return is_name and before in {"WITH", "RECURSIVE", ","} and self._peek().keyword != "RECURSIVE"

    def _is_table(self, token: _Token) -> bool:
        if token.kind == "quoted":
            return True
        return token.kind == "word" and token.keyword not in {*_NO_TABLES, *_ENDS_OF_FROM, "LATERAL", "TABLE"}

    def _take_table(self, frame: _Frame) -> TableReference | None:
        before, start = self._peek(-1).keyword, self._peek().start
        parts = [str(self._peek().name)]
        self.position += 1
        while self._peek().text == "." and self._peek(1).name is not None:
            parts.append(str(self._peek(1).name))
            self.position += 2
        frame.expects_table = False
        is_function = self._peek().text == "("
        is_defined = len(parts) == 1 and any(parts[0].lower() in each.defined for each in self.frames)
        if is_function or is_defined:
            return None
        may_have_alias = before in {"FROM", "JOIN", ","} and self._has_no_alias()
        return TableReference(tuple(parts), start, self._peek(-1).end, may_have_alias)

    def _has_no_alias(self) -> bool:
        following = self._peek()
        return following.keyword not in _BEFORE_ALIAS and (
            following.name is None or following.keyword in _AFTER_NAME
        )

    def _note_keyword(self, token: _Token, frame: _Frame) -> None:
        word = token.keyword
        if self._peek(-1).text == ".":
            return  # the second part of a name, even if it is spelled like a keyword
        if word in {"WITH", "RECURSIVE"}:
            frame.is_in_with = True
            frame.is_recursive = frame.is_recursive or word == "RECURSIVE"
        elif word == "FROM":
            if frame.is_query and self._peek(-1).keyword != "DISTINCT":
                frame.is_in_with, frame.is_in_from, frame.expects_table = False, True, True
        elif word in {"JOIN", "TABLE"}:
            frame.expects_table = True
        elif word == "VALUES":
            frame.expects_table = frame.is_in_from = False
        elif word == ",":
            frame.expects_table = frame.is_in_from
        elif word == "|>" or word in _ENDS_OF_FROM:
            frame.is_in_from = frame.expects_table = False
            frame.is_in_with = frame.is_in_with and word != "SELECT"
