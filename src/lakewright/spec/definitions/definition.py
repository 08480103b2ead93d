"""Definitions: named entries of sections, whose expressions are evaluated when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.definitions.faults import fault_about, faults_of, valid_part
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.definitions.template import Binding, TemplateSpec, Use, bound_values, expand_uses
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.base import Named
from lakewright.spec.reading.parsed_file import ParsedFile
from lakewright.spec.reading.sections import RawDefinition


@dataclass(frozen=True, slots=True)
class Definition:
    """One named entry of a section, such as a relation.

    Attributes:
        category: `relation`, `mapping`, `target`, `connection`, `test`, `template`,
            `entity` or `trigger`.
        name: The key in the section.
        kind: The kind as written.
        raw: The content as written. Scalars are texts, or None if there is no value.
        model: The model class of the kind.
        document: The file of the definition.
        path: The position in the file.
        registry: The kinds for nested definitions.
        bindings: If the definition is made from a template, the template's parameters with their values.
        templates: The templates that nested definitions may use.
        shared: The connection whose settings an entity inherits, as it is written.
    """

    category: str
    name: str
    kind: str
    raw: Mapping[str, Any]
    model: type[Named]
    document: ParsedFile
    path: tuple[str | int, ...]
    registry: Registry
    bindings: tuple[Binding, ...] = ()
    templates: Mapping[str, TemplateSpec] = field(default_factory=dict)
    shared: RawDefinition | None = None

    def at(self, *path: str | int) -> Location:
        """Return the location of the definition, or of the value at `path` inside it.

        A setting that an entity inherits is where its connection declares it.
        """
        if self.shared is not None and path[:1] == ("settings",):
            key = path[:2]
            is_own = self.document.has((*self.path, *key))
            if not is_own and self.shared.document.has((*self.shared.path, *key)):
                return self.shared.at(*path)
        return self.document.at((*self.path, *path))

    @property
    def key(self) -> tuple[str, str]:
        """Its category and name."""
        return self.category, self.name

    @property
    def subject(self) -> str:
        """The name of the definition in errors."""
        return f"{self.category} {self.name!r}"

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
            faults.append(fault_about(self.subject, replace(fault, location=where)))

        return report

    def _expanded(self, raw: Mapping[str, Any], use: Use, faults: list[Fault]) -> Mapping[str, Any]:
        if not self.templates:
            return raw
        made: Mapping[str, Any] = expand_uses(
            raw, self.subject, self.templates, self._locate, use=use, faults=faults
        )
        return made


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
