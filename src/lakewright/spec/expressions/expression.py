"""Parser of expressions in texts: `$name`, `${name}`, `${name.method(argument)}`.

The syntax is the part of Velocity that Flowman's projects use. There are no operators, loops or directives,
so every evaluation ends. Only functions of the table in `functions.py` can be called, so
an expression has access to nothing else. Source: the project files' rules, "Expressions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from lakewright.errors import SpecError
from lakewright.spec.expressions.functions import ALONE, functions_of

# Limits of depth and size, so that a hostile text is rejected within seconds.
DEEPEST = 20
LONGEST = 1_000_000
LONGEST_CACHED = 500
"""Longer texts are not cached: the cache holds thousands of texts."""

_START = re.compile(r"\$(?P<brace>\{\s*)?(?=[A-Za-z_])")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?![\w.])")
_SPACE = re.compile(r"\s*")
_REFERENCE = re.compile(r"(?<!\\)(?:\\\\)*\$(?:\{\s*)?[A-Za-z_]")
_DIRECTIVE = re.compile(r"(?<!\\)#\{?(?:if|elseif|foreach|set|evaluate|parse|include|macro|define)\}?\s*\(")
FUNCTION_NAMES = frozenset(functions_of(ALONE))
"""Functions that belong to no helper. Without braces, `$sql(` is a name and a parenthesis."""
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal text, number, boolean or null."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Name:
    """A name, whose value the scope knows."""

    name: str


@dataclass(frozen=True, slots=True)
class Access:
    """A property of a value, or a call of its method if `arguments` is not None.

    Attributes:
        target: The value or helper; None for a call of a function that belongs to no helper, as `sql(name)`.
    """

    target: Node | None
    member: str
    arguments: tuple[Node, ...] | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A sequence of texts and expressions that are rendered as one text."""

    parts: tuple[str | Node, ...]

    @property
    def single(self) -> Node | None:
        """The expression, if the template consists of just one, else None."""
        part = self.parts[0] if len(self.parts) == 1 else None
        return None if isinstance(part, str) else part


Node: TypeAlias = Literal | Name | Access | Template


def has_expression(text: str) -> bool:
    """Return whether a text contains an expression.

    Example:
        >>> has_expression("data/$year"), has_expression("costs 5 $, or a$")
        (True, False)
    """
    return "$" in text and _REFERENCE.search(text) is not None


def parse_template(text: str) -> Template:
    r"""Return the texts and expressions of a text. A `$` without a name is literal, and `\$name` is `$name`.

    Raises:
        SpecError: An expression is incomplete, nested too deep, or uses an unsupported directive.

    Example:
        >>> parse_template("data/$year").parts
        ('data/', Name(name='year'))
    """
    if "$" not in text and "#" not in text:
        return Template((text,) if text else ())
    return _parse_short(text) if len(text) <= LONGEST_CACHED else _Parser(text).template()


@lru_cache(maxsize=8192)
def _parse_short(text: str) -> Template:
    return _Parser(text).template()


def parse_expression(text: str) -> Node:
    """Return a text that consists of one expression, with or without `${...}` and quotes around it.

    Single quotes inside it interpolate too: `LocalDate.parse('${last_value}')`.

    Raises:
        SpecError: The text is not exactly one expression.

    Example:
        >>> parse_expression("'${last_value}'")
        Name(name='last_value')
    """
    inner = text.strip()
    while len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\"" and inner[0] not in inner[1:-1]:
        inner = inner[1:-1].strip()
    return _Parser(inner, single_quotes_interpolate=True).alone()


def names_in(node: Node) -> frozenset[str]:
    """Return the names that an expression uses."""
    if isinstance(node, Name):
        return frozenset((node.name,))
    return frozenset(name for part in parts_of(node) for name in names_in(part))


def names_used(text: str) -> frozenset[str]:
    """Return the names that the expressions in a text use; none if one of them is invalid."""
    try:
        return names_in(parse_template(text))
    except SpecError:
        return frozenset()


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the direct subexpressions of an expression."""
    if isinstance(node, Access):
        arguments = node.arguments or ()
        return arguments if node.target is None else (node.target, *arguments)
    parts = node.parts if isinstance(node, Template) else ()
    return tuple(part for part in parts if not isinstance(part, str))


class _Parser:
    """Recursive-descent parser for one text. Each method advances `position` past what it has parsed."""

    def __init__(self, text: str, depth: int = 0, *, single_quotes_interpolate: bool = False) -> None:
        if len(text) > LONGEST:
            raise SpecError.of(f"a text with expressions has more than {LONGEST} characters")
        self.text = text
        self.position = 0
        self.depth = depth
        self.single_quotes_interpolate = single_quotes_interpolate

    def template(self) -> Template:
        if found := _DIRECTIVE.search(self.text):
            raise SpecError.of(
                f"the directive {found.group().rstrip('( ')!r} is not supported in expressions",
                remedy="Put the result into an environment entry or a profile, and refer to that.",
            )
        parts: list[str | Node] = []
        literal: list[str] = []
        while (start := self.text.find("$", self.position)) >= 0:
            before = self.text[self.position : start]
            bare = before.rstrip("\\")
            slashes = len(before) - len(bare)
            self.position = start
            if not _START.match(self.text, start):
                literal += (before, "$")
                self.position += 1
            elif slashes % 2:
                literal += (bare, "\\" * (slashes // 2), "$")
                self.position += 1
            else:
                literal += (bare, "\\" * (slashes // 2))
                parts += ("".join(literal), self.reference())
                literal = []
        parts.append("".join([*literal, self.text[self.position :]]))
        return Template(tuple(part for part in parts if part != ""))

    def alone(self) -> Node:
        node = self.operand()
        self.skip_space()
        if self.position < len(self.text):
            raise self.fail(f"unexpected {self.rest()!r} after the expression")
        return node

    def reference(self) -> Node:
        found = _START.match(self.text, self.position)
        if found is None:
            raise self.fail("a name is expected after '$'")
        self.position = found.end()
        node = self.called(self.word()) if found["brace"] is not None else Name(self.word())
        node = self.chain(node, is_braced=found["brace"] is not None)
        if found["brace"] is not None:
            self.skip_space()
            if not self.take("}"):
                raise self.lacks("'}'")
        return node

    def called(self, word: str) -> Node:
        """Return the name, or the call of the function if `(` follows the name of one."""
        is_call = word in FUNCTION_NAMES and self.text.startswith("(", self.position)
        return Access(None, word, self.arguments()) if is_call else Name(word)

    def chain(self, node: Node, *, is_braced: bool) -> Node:
        """Parse any number of `.property` and `.method(...)`."""
        depth = self.depth
        while self.text.startswith(".", self.position) and _WORD.match(self.text, self.position + 1):
            self.deepen()
            self.position += 1
            member = self.word()
            node = Access(
                node, member, self.arguments() if self.text.startswith("(", self.position) else None
            )
        if is_braced and self.text.startswith(".", self.position):
            raise self.fail("a property or method is expected after '.'")
        self.depth = depth
        return node

    def arguments(self) -> tuple[Node, ...]:
        self.position += 1
        found: list[Node] = []
        self.skip_space()
        while not self.take(")"):
            if found and not self.take(","):
                raise self.lacks("',' or ')'" if self.rest() else "')'")
            found.append(self.operand())
            self.skip_space()
        return tuple(found)

    def operand(self) -> Node:
        self.deepen()
        self.skip_space()
        sign = self.text[self.position : self.position + 1]
        if sign in ("'", '"'):
            node = self.quoted(sign)
        elif sign == "$":
            node = self.reference()
            node = self.chain(node, is_braced=False)
        elif found := _NUMBER.match(self.text, self.position):
            self.position = found.end()
            node = Literal(float(found.group()) if "." in found.group() else int(found.group()))
        elif _WORD.match(self.text, self.position):
            word = self.word()
            node = Literal(_WORDS[word]) if word in _WORDS else self.chain(self.called(word), is_braced=False)
        else:
            raise self.lacks("a value")
        self.depth -= 1
        return node

    def quoted(self, quote: str) -> Node:
        end = self.position + 1
        while (end := self.text.find(quote, end)) >= 0 and self.text.startswith(quote * 2, end):
            end += 2
        if end < 0:
            raise self.fail(f"the closing {quote} is missing")
        inner = self.text[self.position + 1 : end].replace(quote * 2, quote)
        self.position = end + 1
        if "$" not in inner or (quote == "'" and not self.single_quotes_interpolate):
            return Literal(inner)
        template = _Parser(
            inner, self.depth + 1, single_quotes_interpolate=self.single_quotes_interpolate
        ).template()
        return template.single or template

    def word(self) -> str:
        found = _WORD.match(self.text, self.position)
        if found is None:
            raise self.fail("a name is expected")
        self.position = found.end()
        if found.group().startswith("_"):
            raise SpecError.of(
                f"the name {found.group()!r} starts with '_', which expressions do not allow",
                remedy="Write \\$ for a literal dollar sign.",
            )
        return found.group()

    def take(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.position):
            return False
        self.position += 1
        return True

    def skip_space(self) -> None:
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position

    def deepen(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise SpecError.of(f"an expression is nested more than {DEEPEST} deep")

    def rest(self) -> str:
        return self.text[self.position : self.position + 20]

    def lacks(self, what: str) -> SpecError:
        rest = self.rest()
        return self.fail(f"{what} is expected before {rest!r}" if rest else f"{what} is missing")

    def fail(self, why: str) -> SpecError:
        start = max(0, self.position - 40) if len(self.text) > 80 else 0
        shown = self.text[start : start + 80]
        remedy = "Write \\$ for a literal dollar sign."
        return SpecError.of(f"{shown!r} is not a complete expression: {why}", remedy=remedy)
