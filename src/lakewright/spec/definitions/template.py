"""Templates: definitions with parameters, whose values each use provides.

Source: the project files' rules, `templates`. A use has the kind `template/<name>`, as in Flowman.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.definitions.faults import Locate
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import ValueType, parse_value
from lakewright.spec.models.base import Listed, Named
from lakewright.spec.models.job import Parameter
from lakewright.spec.suggestions import suggestion

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
        faults.append(Fault(f"{subject}: {parameter.name!r} {why}", location))
    names = [*(parameter.name for parameter in spec.parameters), *AROUND]
    faults += [
        Fault(f"{subject}: the template has no parameter {key!r}", locate((key,)), suggestion(key, names))
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
            message = f"{subject}: parameter {binding.name!r} of the template: {error}"
            raise SpecError.of(message, location=binding.location) from None
    return values


Use = Callable[[TemplateSpec, tuple[Binding, ...]], Mapping[str, Any]]
"""Returns the content of a template for the given parameters."""


def expand_uses(
    value: Any,
    subject: str,
    templates: Mapping[str, TemplateSpec],
    locate: Locate,
    *,
    use: Use,
    faults: MutableSequence[Fault],
) -> Any:
    """Return the content of a definition with nested uses of templates expanded.

    Args:
        value: The content. It must not itself be a use of a template.
        subject: Name of the definition in faults.
        templates: Templates by name.
        locate: Returns the location of a path inside the definition.
        use: Returns the content of a template for the given parameters.
        faults: Receives the faults.
    """

    def expanded(part: Any, path: tuple[str | int, ...], depth: int) -> Any:
        if isinstance(part, list):
            return [expanded(item, (*path, index), depth) for index, item in enumerate(part)]
        if not isinstance(part, Mapping):
            return part
        kind = part.get("kind")
        if path and isinstance(kind, str) and kind.startswith(PREFIX):
            part = used(part, kind.removeprefix(PREFIX), path)
            depth += 1
        if depth > DEEPEST:
            faults.append(
                Fault(f"{subject}: templates use each other more than {DEEPEST} deep", locate(path))
            )
            return {}
        return {key: expanded(inner, (*path, key), depth) for key, inner in part.items()}

    def used(part: Mapping[str, Any], name: str, path: tuple[str | int, ...]) -> Mapping[str, Any]:
        if name not in templates:
            remedy = suggestion(name, templates)
            faults.append(Fault(f"{subject}: there is no template {name!r}", locate((*path, "kind")), remedy))
            return {}
        bindings, wrong = bind(subject, part, templates[name], lambda inner: locate((*path, *inner)))
        faults.extend(wrong)
        around = {key: part[key] for key in AROUND if key in part}
        return {} if wrong else {**use(templates[name], bindings), **around}

    return expanded(value, (), 0)
