"""Definitions: named entries of sections, whose expressions are evaluated when they are used.

The faults of their values are those that pydantic finds, with locations. A template is a definition with
parameters, whose values each use provides; a use has the kind `template/<name>`, as in Flowman.

Source: the project files' rules, `templates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import ValueType, parse_value
from lakewright.spec.models.base import Listed, Named
from lakewright.spec.models.job import Parameter
from lakewright.spec.reading.parsed_file import ValuePath, texts_in
from lakewright.spec.reading.sections import RawDefinition
from lakewright.spec.suggestions import suggestion

M = TypeVar("M")

Locate = Callable[[ValuePath], Location]

VALIDATED = "validated"
"""Detail of faults of a value that a field does not accept: the path of the field."""

_WHOLE = frozenset(("missing", "unknown_key", "unknown_kind", "extra_forbidden", "inconsistent"))
"""Types of errors that do not depend on the values of expressions."""


def faults_of(
    error: ValidationError, subject: str, locate: Locate, *, is_rendered: bool
) -> tuple[Fault, ...]:
    """Return the faults of a validation, without errors that only result from unevaluated expressions.

    Args:
        error: The validation error.
        subject: Name of what was validated, such as `relation 'stations'`.
        locate: Returns the location of a path inside the subject.
        is_rendered: Whether expressions are evaluated already, so that every error counts.
    """
    return tuple(
        _fault(found, subject, locate)
        for found in error.errors(include_url=False)
        if is_rendered or found["type"] in _WHOLE or not holds_expression(found["input"])
    )


def holds_expression(value: Any) -> bool:
    """Return whether any text in a value contains an expression."""
    return any(has_expression(text) for text in texts_in(value))


def valid_part(raw: Any, validate: Callable[[Any], M]) -> tuple[Any, M] | None:
    """Return what is valid of a declaration, and its model, for checks that its faults would hide.

    The entries of maps that the faults are in are left out. None if the rest is not valid either.
    """
    while raw is not None:
        try:
            return raw, validate(raw)
        except ValidationError as error:
            paths = {tuple(found["loc"]) for found in error.errors(include_url=False)}
            raw = reduce(lambda part, path: None if part is None else _without(part, path), paths, raw)
    return None


def _without(value: Any, path: Sequence[str | int]) -> Any:
    """Return a value without the innermost entry of a map that a path leads to; None if it leads to none."""
    step, rest = (path[0], path[1:]) if path else (None, ())
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        inner = _without(value[step], rest)
        return None if inner is None else [*value[:step], inner, *value[step + 1 :]]
    if not isinstance(value, Mapping) or step not in value:
        return None
    inner = _without(value[step], rest)
    others = {key: each for key, each in value.items() if key != step}
    return others if inner is None else {**value, step: inner}


def _fault(found: Any, subject: str, locate: Locate) -> Fault:
    path = tuple(found["loc"])
    context = found.get("ctx") or {}
    # Validators of a whole model run after those that write their own messages.
    message = str(context.get("error", found["msg"]))
    if found["type"] == "missing" and path:
        message, path = f"{path[-1]!r} is missing", path[:-1]
    elif found["type"] == "unknown_key":
        path = path[:-1]
    inside = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return Fault(
        f"{inside}: {message}" if inside else message,
        location=locate(tuple(found["loc"])),
        remedy=context.get("remedy"),
        details={} if found["type"] in _WHOLE else {VALIDATED: list(found["loc"])},
    ).about(subject)


PREFIX = "template/"
"""Prefix of the kind of a definition that uses a template."""

AROUND = ("before", "after", "description", "documentation", "enabled", "metadata")
"""Keys that a use of a template may have in addition to the parameters."""

DEEPEST = 5


class TemplateSpec(Named):
    """A template for definitions of one category, which is its `kind`."""

    parameters: Listed[Parameter] = Field(
        default=(), description="Parameters, whose values each use provides."
    )
    template: dict[str, Any] = Field(description="The definition, in which $parameter stands for a value.")


@dataclass(frozen=True, slots=True)
class Binding:
    """A parameter of a template, with the text that a use provides."""

    name: str
    type: ValueType
    text: str
    location: Location | None = None


def bind(
    subject: str, given: Mapping[str, Any], spec: TemplateSpec, locate: Locate
) -> tuple[tuple[Binding, ...], tuple[Fault, ...]]:
    """Return the parameters that a use of a template provides, and the faults."""
    rest: dict[str, Any] = {key: value for key, value in given.items() if key not in ("kind", *AROUND)}
    bindings: list[Binding] = []
    faults: list[Fault] = []
    for parameter in spec.parameters:
        text = rest.pop(parameter.name, parameter.default)
        location = locate((parameter.name,))
        if isinstance(text, str):
            bindings.append(Binding(parameter.name, parameter.type, text, location))
            continue
        why = "is missing, a parameter of the template" if text is None else "must be a single value"
        faults.append(Fault(f"{parameter.name!r} {why}", location).about(subject))
    names = [*(parameter.name for parameter in spec.parameters), *AROUND]
    faults += [
        Fault(f"the template has no parameter {key!r}", locate((key,)), suggestion(key, names)).about(subject)
        for key in rest
    ]
    return tuple(bindings), tuple(faults)


def bound_values(subject: str, bindings: tuple[Binding, ...], scope: Scope) -> dict[str, object]:
    """Return the values of a template's parameters.

    Raises:
        SpecError: A text is not a value of its parameter's type.
    """
    values: dict[str, object] = {}
    for binding in bindings:
        try:
            values[binding.name] = parse_value(binding.type, scope.render(binding.text))
        except ValueError as error:
            message = f"parameter {binding.name!r} of the template: {error}"
            raise SpecError.of(message, location=binding.location, subject=subject) from None
    return values


Use = Callable[[TemplateSpec, tuple[Binding, ...]], Mapping[str, Any]]
"""Returns the content of a template for the given parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(RawDefinition):
    """One named entry of a section, such as a relation, with the class of its kind.

    Attributes:
        category: `relation`, `mapping`, `target`, `connection`, `test`, `template`,
            `entity` or `trigger`.
        kind: The kind as written.
        model: The model class of the kind.
        registry: The kinds for nested definitions.
        bindings: If the definition is made from a template, the template's parameters with their values.
        templates: The templates that nested definitions may use.
    """

    category: str
    kind: str
    model: type[Named]
    registry: Registry
    bindings: tuple[Binding, ...] = ()
    templates: Mapping[str, TemplateSpec] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Its category and name."""
        return self.category, self.name

    @property
    def subject(self) -> str:
        """The name of the definition in errors."""
        return f"{self.category} {self.name!r}"

    def fault(
        self,
        message: str,
        *path: str | int,
        remedy: str | None = None,
        touches: Iterable[tuple[str, str]] = (),
    ) -> Fault:
        """Return a fault of the definition, at the value at `path` inside it.

        Args:
            message: What is wrong with the definition.
            path: Where.
            remedy: What to do.
            touches: The other definitions that are wrong because of it.
        """
        found = Fault(message, self.at(*path), remedy, touches=(self.key, *touches))
        return found.about(self.subject)

    def check(self) -> tuple[Named | None, tuple[Fault, ...]]:
        """Return the model of the definition with unevaluated expressions, and the faults.

        The model is None if it cannot be read before its expressions are evaluated. That alone is not a
        fault.
        """
        faults: list[Fault] = []
        raw = self._expanded(self.raw, lambda spec, _: spec.template, faults)
        try:
            return (None, tuple(faults)) if faults else (self._validate(raw), ())
        except ValidationError as error:
            return None, faults_of(error, self.subject, self._locate, is_rendered=False)

    def check_rest(self) -> Named | None:
        """Return the model of what is valid in the definition, or None; its faults are those of `check`."""
        found = valid_part(self._expanded(self.raw, lambda spec, _: spec.template, []), self._validate)
        return found and found[1]

    def resolve(self, scope: Scope) -> Named:
        """Return the model of the definition with evaluated expressions.

        The fields that the model lists in `deferred` keep their expressions.

        Raises:
            SpecError: An expression or a field is invalid. Every fault has file and line.
        """
        faults: list[Fault] = []
        inner = scope.child(bound_values(self.subject, self.bindings, scope)) if self.bindings else scope
        kept = frozenset(tuple(name.split(".")) for name in self.model.deferred)
        rendered = render_tree(self.raw, inner.render, self._reporter(faults), kept=kept)

        def use(spec: TemplateSpec, bindings: tuple[Binding, ...]) -> Mapping[str, Any]:
            names = inner.child(bound_values(self.subject, bindings, Scope()))
            made: Mapping[str, Any] = render_tree(spec.template, names.render, self._reporter(faults))
            return made

        rendered = self._expanded(rendered, use, faults)
        try:
            model = self._validate(rendered)
            if not faults:
                return model
        except ValidationError as error:
            faults += faults_of(error, self.subject, self._locate, is_rendered=not faults)
        raise SpecError(faults)

    def _validate(self, raw: Mapping[str, Any]) -> Named:
        named = {"name": self.name, **raw, "kind": self.kind}
        return self.model.model_validate(named, context={"registry": self.registry})

    def _locate(self, path: tuple[str | int, ...]) -> Location:
        return self.at(*path)

    def _reporter(self, faults: list[Fault]) -> Callable[[SpecError, tuple[str | int, ...]], None]:
        def report(error: SpecError, path: tuple[str | int, ...]) -> None:
            fault = error.faults[0]
            where = fault.location or self.at(*path)
            faults.append(replace(fault, location=where).about(self.subject))

        return report

    def _expanded(self, raw: Any, use: Use, faults: list[Fault], path: ValuePath = (), depth: int = 0) -> Any:
        """Return a value with the templates that definitions inside it use expanded.

        Args:
            raw: The value.
            use: Returns the content of a template for the given parameters.
            faults: Receives the faults.
            path: Where the value is.
            depth: How many templates it is in.
        """
        if isinstance(raw, list):
            return [self._expanded(each, use, faults, (*path, at), depth) for at, each in enumerate(raw)]
        if not isinstance(raw, Mapping) or not self.templates:
            return raw
        kind = raw.get("kind")
        if path and isinstance(kind, str) and kind.startswith(PREFIX):
            raw, depth = self._used(raw, kind.removeprefix(PREFIX), path, use, faults), depth + 1
        if depth > DEEPEST:
            faults.append(self.fault(f"templates use each other more than {DEEPEST} deep", *path))
            return {}
        return {key: self._expanded(each, use, faults, (*path, key), depth) for key, each in raw.items()}

    def _used(
        self, raw: Mapping[str, Any], name: str, path: ValuePath, use: Use, faults: list[Fault]
    ) -> Mapping[str, Any]:
        spec = self.templates.get(name)
        if spec is None:
            remedy = suggestion(name, self.templates)
            faults.append(self.fault(f"there is no template {name!r}", *path, "kind", remedy=remedy))
            return {}
        bindings, wrong = bind(self.subject, raw, spec, lambda inner: self.at(*path, *inner))
        faults.extend(wrong)
        around = {key: raw[key] for key in AROUND if key in raw}
        return {} if wrong else {**use(spec, bindings), **around}


def render_tree(
    value: Any,
    render: Callable[[str], str],
    report: Callable[[SpecError, tuple[str | int, ...]], None],
    path: tuple[str | int, ...] = (),
    *,
    kept: frozenset[tuple[str, ...]] = frozenset(),
) -> Any:
    """Return a value with all its texts rendered.

    Args:
        value: A text, or a map or list of values.
        render: Renders a text.
        report: Called with the error and path of a text that cannot be rendered. Such a text is kept.
        path: The path of the value.
        kept: Paths of values that are not rendered.
    """
    if path in kept:
        return value
    if isinstance(value, str):
        try:
            return render(value)
        except SpecError as error:
            report(error, path)
            return value
    if isinstance(value, Mapping):
        return {
            key: render_tree(part, render, report, (*path, key), kept=kept) for key, part in value.items()
        }
    if isinstance(value, Sequence):
        return [
            render_tree(part, render, report, (*path, index), kept=kept) for index, part in enumerate(value)
        ]
    return value
