"""One named entry of a section, kept as text until it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.document import Document
from lakewright.spec.faults import faults_of
from lakewright.spec.model import Named
from lakewright.spec.registry import Registry
from lakewright.spec.scope import Scope
from lakewright.spec.values import ValueType, parse_value

__all__ = ["Binding", "Definition", "render_tree"]


@dataclass(frozen=True, slots=True)
class Binding:
    """A parameter of a template with the text given for it where the template is used."""

    name: str
    type: ValueType
    text: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """One named entry of a section, such as a relation.

    Attributes:
        category: `relation`, `mapping`, `target`, `connection`, `test`, `template` or `entity`.
        name: Its key in the section.
        kind: As written.
        raw: What was written: scalars are texts, or None where there is none.
        model: The kind's class.
        document: The file in which it stands.
        path: Where in the file.
        registry: The kinds of the definitions inside of it.
        bindings: Where it comes from a template, the template's parameters with their values.
    """

    category: str
    name: str
    kind: str
    raw: Mapping[str, Any]
    model: type[Named]
    document: Document
    path: tuple[str | int, ...]
    registry: Registry
    bindings: tuple[Binding, ...] = ()

    def at(self, *path: str | int) -> Location:
        """Return where the definition, or what is at `path` inside of it, stands."""
        return self.document.at((*self.path, *path))

    @property
    def subject(self) -> str:
        """The definition as errors name it."""
        return f"{self.category} {self.name!r}"

    def check(self) -> tuple[Named | None, tuple[Fault, ...]]:
        """Return the definition with its expressions as they are written, and what is wrong with it.

        Expressions aren't evaluated; a field that can't be read before that is no fault, but leaves None.
        """
        try:
            return self._validate(self.raw), ()
        except ValidationError as error:
            return None, faults_of(error, self.subject, self._locate, is_rendered=False)

    def resolve(self, scope: Scope) -> Named:
        """Return the definition with its expressions evaluated and its fields read.

        The fields that the model names in `deferred` keep their expressions.

        Raises:
            SpecError: An expression or a field is wrong; every fault names file and line.
        """
        faults: list[Fault] = []
        inner = scope.child(self._bound(scope)) if self.bindings else scope
        kept = frozenset(tuple(name.split(".")) for name in self.model.deferred)
        rendered = render_tree(self.raw, inner.render, self._reporter(faults), kept=kept)
        if faults:
            raise SpecError(faults)
        try:
            return self._validate(rendered)
        except ValidationError as error:
            raise SpecError(faults_of(error, self.subject, self._locate, is_rendered=True)) from None

    def _validate(self, raw: Mapping[str, Any]) -> Named:
        named = {"name": self.name, **raw, "kind": self.kind}
        return self.model.model_validate(named, context={"registry": self.registry})

    def _locate(self, path: tuple[str | int, ...]) -> Location:
        return self.at(*path)

    def _reporter(self, faults: list[Fault]) -> Callable[[SpecError, tuple[str | int, ...]], None]:
        def report(error: SpecError, path: tuple[str | int, ...]) -> None:
            fault = error.faults[0]
            where = fault.location or self.at(*path)
            faults.append(Fault(f"{self.subject}: {fault.message}", location=where, remedy=fault.remedy))

        return report

    def _bound(self, scope: Scope) -> dict[str, object]:
        values: dict[str, object] = {}
        for binding in self.bindings:
            try:
                values[binding.name] = parse_value(binding.type, scope.render(binding.text))
            except ValueError as error:
                message = f"{self.subject}: parameter {binding.name!r} of its template: {error}"
                raise SpecError.of(message, location=binding.location) from None
        return values


def render_tree(
    value: Any,
    render: Callable[[str], str],
    report: Callable[[SpecError, tuple[str | int, ...]], None],
    path: tuple[str | int, ...] = (),
    *,
    kept: frozenset[tuple[str, ...]] = frozenset(),
) -> Any:
    """Return a value with every text in it rendered; what can't be is reported, with its path, and kept.

    What stands at a path of `kept` is left as it is.
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
