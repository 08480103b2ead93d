"""Scopes: the names that expressions can use, and the evaluation of expressions with their calls.

Precedence, high to low: names that a definition adds itself (such as the value of a partition), arguments of
the job, `-D`, environment of the job, profile, project, and what each run provides (`force`, `job`, …).
Source: the project files' rules, "Expressions".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from threading import RLock

from lakewright.errors import Fault, Location, SpecError
from lakewright.errors.phrase import Option, Phrase
from lakewright.spec.expressions.expression import (
    FUNCTION_NAMES,
    Access,
    Literal,
    Name,
    Node,
    Template,
    names_in,
    parse_template,
)
from lakewright.spec.expressions.functions import (
    FREE_FUNCTIONS,
    NAMESPACES,
    VALUES,
    EvaluationContext,
    Function,
    Namespace,
    functions_of,
)
from lakewright.spec.expressions.secrets import credentials_in, is_secret_name
from lakewright.spec.expressions.values import render_alone, render_value
from lakewright.spec.suggestions import meant, suggestion

# Limits of the length of a result and the depth of entries, so that hostile texts fail with an error.
LONGEST = 1_000_000
DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """An environment entry: a text that may contain expressions, evaluated when its name is used."""

    text: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """Names that were declared together.

    Attributes:
        rank: The layer's precedence. A higher rank overrides a lower one, also if it was added earlier.
        values: The values, by name.
    """

    rank: int
    values: Mapping[str, object]


BACKGROUND, PROJECT, JOB, DEFINITIONS, ARGUMENTS = range(5)


class Scope:
    """Names with their values, which are evaluated at their first use. An unused entry may be invalid.

    An entry is evaluated in the scope that uses it, so entries of the project can refer to parameters of a
    job. An entry that uses its own name refers to the entry that it overrides.
    """

    def __init__(
        self,
        environment: Mapping[str, object] | None = None,
        *,
        definitions: Mapping[str, object] | None = None,
        context: EvaluationContext | None = None,
    ) -> None:
        """Create the scope of a project from its environment, including profiles, and the `-D` definitions.

        Values of type `Entry` are evaluated; others are used unchanged.
        """
        self._layers: tuple[Layer, ...] = (
            Layer(DEFINITIONS, dict(definitions or {})),
            Layer(PROJECT, dict(environment or {})),
        )
        self._context = context or EvaluationContext()
        self._known: dict[tuple[str, int], object] = {}
        self._pending: list[tuple[str, int]] = []
        # Targets of one instance run in parallel and share its scope.
        self._lock = RLock()

    def child(self, values: Mapping[str, object]) -> Scope:
        """Return this scope with additional names, which override all others. Values are used unchanged."""
        return self._with(Layer(ARGUMENTS, dict(values)))

    def backed_by(self, values: Mapping[str, object]) -> Scope:
        """Return this scope with additional names, which all others override. Values are used unchanged."""
        return self._with(Layer(BACKGROUND, dict(values)))

    def instance(
        self, environment: Mapping[str, object] | None = None, arguments: Mapping[str, object] | None = None
    ) -> Scope:
        """Return the scope of one instance of a job or test. `-D` overrides entries, arguments override `-D`.

        Texts in `environment` may contain expressions. Arguments are used unchanged.
        """
        entries = {
            name: Entry(value) if isinstance(value, str) else value
            for name, value in (environment or {}).items()
        }
        for name, value in (arguments or {}).items():
            self._note(name, value)
        return self._with(Layer(JOB, entries), Layer(ARGUMENTS, dict(arguments or {})))

    def at(self, moment: datetime, zone: tzinfo) -> Scope:
        """Return this scope as of another time: `LocalDate.today()` is the date in `zone` at that moment."""
        made = self._with()
        made._context = replace(self._context, clock=lambda: moment, zone=zone)
        return made

    def _with(self, *layers: Layer) -> Scope:
        made = Scope(context=self._context)
        newest_first = (*reversed(layers), *self._layers)
        made._layers = tuple(sorted(newest_first, key=lambda layer: -layer.rank))
        return made

    @property
    def names(self) -> frozenset[str]:
        """All names in the scope, including helpers."""
        return frozenset(name for layer in self._layers for name in layer.values) | frozenset(NAMESPACES)

    @property
    def seen_secrets(self) -> Set[str]:
        """The secret values that expressions and arguments have contained so far. The set may grow."""
        return self._context.secrets

    @property
    def defaults(self) -> Set[str]:
        """The texts that stood in for environment variables so far; they are no secrets. The set may grow."""
        return self._context.defaults - self._context.secrets

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must not appear in logs, records and pages.

        They are what expressions read from files, environment variables and entries whose names denote
        secrets, and passwords in URLs; but not the default that a project's file has for a variable.
        """
        found = set(self._context.secrets)
        for name in sorted({name for layer in self._layers for name in layer.values}):
            try:
                text = render_value(self.value(name))
            except SpecError:
                continue
            found |= credentials_in(text)
            if is_secret_name(name):
                found.add(text)
        return frozenset(text for text in found | self._context.secrets if text) - self.defaults

    def render(self, text: str) -> str:
        """Return a text with its expressions replaced by their values.

        A text that is a single expression of a timestamp becomes a `TimestampText`.

        Raises:
            SpecError: An expression is invalid or uses an unknown name.
        """
        if "$" not in text and "#" not in text:
            return text
        rendered = render_alone(self.evaluate(text))
        self._bounded(rendered)
        return rendered

    def evaluate(self, text: str) -> object:
        """Return the typed value of a text that is a single expression, else the rendered text.

        Raises:
            SpecError: An expression is invalid or uses an unknown name.
        """
        try:
            template = parse_template(text)
            return self._join(template) if template.single is None else self.evaluate_node(template.single)
        except RecursionError:
            raise SpecError.of("environment entries and expressions are nested too deep") from None

    def value(self, name: str) -> object:
        """Return the value of a name.

        Raises:
            SpecError: The name is unknown, or its entry is invalid or refers to itself in a cycle.
        """
        with self._lock:
            asking, depth_of_asking = self._pending[-1] if self._pending else ("", -1)
            first = depth_of_asking + 1 if asking == name else 0
            for depth, layer in enumerate(self._layers[first:], first):
                if name in layer.values:
                    return self._note(name, self._value_at(name, depth))
        if name in NAMESPACES:
            return NAMESPACES[name]
        raise SpecError.of(
            f"unknown name {name!r}", remedy=self._remedy(name), details={"unknown_name": name}
        )

    def names_behind(self, text: str) -> frozenset[str]:
        """Return the names that rendering a text may use, directly and through entries of environments.

        Raises:
            SpecError: An expression is incomplete.
        """
        found: set[str] = set()
        pending = [text]
        while pending:
            for name in names_in(parse_template(pending.pop())) - found:
                found.add(name)
                entries = (layer.values.get(name) for layer in self._layers)
                pending += [entry.text for entry in entries if isinstance(entry, Entry)]
        return frozenset(found)

    def entries_behind(self, text: str, given: Collection[str] = ()) -> dict[str, str]:
        """Return the entries of environments that a text uses, each as a text, by name.

        Entries behind entries are among them. Those of a job override those of the project. Parameters are
        left out, although they override: the result is the same in each run.

        Args:
            text: The text.
            given: Names that `-D` overrides: what their entries use is left out.

        Raises:
            SpecError: An expression is incomplete.
        """
        found: dict[str, str] = {}
        pending = [text]
        while pending:
            for name in sorted(names_in(parse_template(pending.pop())) - found.keys()):
                if texts := list(self._declared_texts(name)):
                    found[name] = "\n".join(texts)
                    pending += () if name in given else texts
        return found

    def _declared_texts(self, name: str) -> Iterator[str]:
        """Yield the text of an entry, followed by that which it overrides if it uses its own name."""
        for layer in self._layers:
            entry = layer.values.get(name) if layer.rank in (PROJECT, JOB) else None
            if isinstance(entry, Entry):
                yield entry.text
                if name not in names_in(parse_template(entry.text)):
                    return

    @property
    def definitions(self) -> dict[str, str]:
        """The texts of `-D`, and of the file that overrides entries on this machine, by name."""
        return self._entries_of(DEFINITIONS)

    @property
    def job_entries(self) -> dict[str, str]:
        """The texts of the job's environment, by name."""
        return self._entries_of(JOB)

    def _entries_of(self, rank: int) -> dict[str, str]:
        layers = [layer.values for layer in reversed(self._layers) if layer.rank == rank]
        pairs = (pair for values in layers for pair in values.items())
        return {name: entry.text for name, entry in pairs if isinstance(entry, Entry)}

    def _note(self, name: str, value: object) -> object:
        """Return a value, and record it as secret if its name denotes a secret."""
        if is_secret_name(name) and (text := render_value(value)) and text not in self._context.defaults:
            self._context.secrets.add(text)
        return value

    def _remedy(self, name: str) -> str:
        if name in FUNCTION_NAMES:
            return f"Write ${{{name}(name)}}, with braces, to call the function."
        if remedy := meant(name, self.names):
            return remedy
        given = Option("-D", f'{name}=…, or Project.load(…, definitions={{"{name}": "…"}})')
        ways = Phrase("in an environment, as a parameter of the job or with ", given)
        return Phrase(f"Declare {name!r} ", ways, ". Write \\$ for a literal dollar sign.")

    def _value_at(self, name: str, depth: int) -> object:
        value = self._layers[depth].values[name]
        if not isinstance(value, Entry):
            return value
        key = (name, depth)
        if key not in self._known:
            self._known[key] = self._evaluated(key, value)
        return self._known[key]

    def _evaluated(self, key: tuple[str, int], entry: Entry) -> object:
        if key in self._pending or len(self._pending) >= DEEPEST:
            start = self._pending.index(key) if key in self._pending else -3
            cycle = " -> ".join([*(name for name, _ in self._pending[start:]), key[0]])
            raise SpecError.of(
                f"environment entries refer to each other in a cycle: {cycle}",
                location=entry.location,
                remedy="Give one of them a value of its own.",
            )
        self._pending.append(key)
        try:
            return self.evaluate(entry.text)
        except SpecError as error:
            raise error.placed(f"environment entry {key[0]!r}", entry.location) from error
        finally:
            self._pending.pop()

    def evaluate_node(self, node: Node) -> object:
        """Return the value of a parsed expression.

        Raises:
            SpecError: It uses an unknown name, or a helper does not accept its arguments.
        """
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Name):
            return self.value(node.name)
        if isinstance(node, Template):
            return self._join(node)
        return self._bounded(self._access(node))

    def _access(self, node: Access) -> object:
        target = FREE_FUNCTIONS if node.target is None else self.evaluate_node(node.target)
        if node.arguments is None:
            written = node.target.name if isinstance(node.target, Name) else "name"
            return read_property(target, node.member, self._context, written=written)
        arguments = tuple(self.evaluate_node(argument) for argument in node.arguments)
        return call(target, node.member, arguments, self._context)

    def _join(self, template: Template) -> str:
        texts: list[str] = []
        length = 0
        for part in template.parts:
            text = part if isinstance(part, str) else render_value(self.evaluate_node(part))
            length += len(text)
            if length > LONGEST:
                raise SpecError.of(f"the rendered text has more than {LONGEST} characters")
            texts.append(text)
        return "".join(texts)

    def _bounded(self, value: object) -> object:
        if isinstance(value, str) and len(value) > LONGEST:
            raise SpecError.of(f"the rendered text has more than {LONGEST} characters")
        return value


DEPENDS_ON_VALUE = "depends_on_value"
"""Detail of faults that other values of the same type may not have."""

_METHODS = {word: functions_of(word) for word in VALUES}


def call(target: object, method: str, arguments: tuple[object, ...], context: EvaluationContext) -> object:
    """Return the result of a method of a value, or of a function of a helper.

    Raises:
        SpecError: There is no such method, or it does not accept the arguments.
    """
    table = _table(target)
    function = table.get(method)
    helper = target.name if isinstance(target, Namespace) else None
    where = f"{method} of {_kind(target)}" if helper is None else f"{helper}.{method}".lstrip(".")
    if function is None:
        raise SpecError.of(f"there is no {where} in expressions", remedy=suggestion(method, table))
    if why := function.count_problem(where, len(arguments)):
        raise SpecError.of(why)
    first = [context] if function.uses_context else [target] if helper is None else []
    try:
        given = [kind.convert(each) for kind, each in zip(function.parameters, arguments, strict=False)]
        return function.call(*first, *given)
    except (ValueError, OverflowError, ArithmeticError, OSError) as error:
        raise SpecError([Fault(f"{where}: {error}", details={DEPENDS_ON_VALUE: True})]) from error


def call_problem(helper: str | None, method: str, arguments: Sequence[Node]) -> str | None:
    """Return why a call fails for every value of the names in it, or None if it may succeed.

    Args:
        helper: The helper of the function, or None for a method of a value of any type.
        method: The called method or function.
        arguments: The arguments as written.
    """
    tables = [NAMESPACES[helper].functions] if helper else [*_METHODS.values()]
    where = f"{helper}.{method}" if helper else method
    found = [table[method] for table in tables if method in table]
    if not found:
        hint = meant(method, {name for table in tables for name in table})
        return f"there is no {where} in expressions{f' ({hint})' if hint else ''}"
    wrong = [
        function.count_problem(where, len(arguments)) or _literal_problem(where, function, arguments)
        for function in found
    ]
    return wrong[0] if all(wrong) else None


def _literal_problem(where: str, function: Function, arguments: Sequence[Node]) -> str | None:
    """Return why a literal is no argument of a function, or None."""
    for kind, argument in zip(function.parameters, arguments, strict=False):
        try:
            if isinstance(argument, Literal):
                kind.convert(argument.value)
        except (ValueError, OverflowError) as error:
            return f"{where}: {error}"
    return None


def read_property(target: object, name: str, context: EvaluationContext, *, written: str = "name") -> object:
    """Return a property of a value. `$date.year` is `$date.getYear()`, as in Velocity.

    Args:
        target: The value.
        name: Name of the property.
        context: Context of a getter.
        written: The name of the value in the expression, for the error.

    Raises:
        SpecError: The value has no such property.
    """
    known: Mapping[str, object] = target.properties if isinstance(target, Namespace) else {}
    if name in known:
        return known[name]
    getter = f"get{name[:1].upper()}{name[1:]}"
    if not isinstance(target, Namespace) and getter in _table(target):
        return call(target, getter, (), context)
    raise SpecError.of(
        f"{_kind(target)} has no property {name!r}",
        remedy=suggestion(name, known) or f"Write ${{{written}}}.{name} to put that text after the value.",
        details={"unknown_property": name},
    )


def _kind(target: object) -> str:
    if isinstance(target, Namespace):
        return repr(target.name)
    word = _word(target)
    return f"a {word}" if word else type(target).__name__


def _word(value: object) -> str:
    return next((word for word, types in VALUES.items() if isinstance(value, types)), "")


def _table(target: object) -> Mapping[str, Function]:
    return target.functions if isinstance(target, Namespace) else _METHODS.get(_word(target), {})
