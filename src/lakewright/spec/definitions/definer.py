"""Makes definitions from the entries of sections, by finding the class of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.definitions.definition import AROUND, PREFIX, Binding, Definition, TemplateSpec, bind
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.expressions.values import ValueType
from lakewright.spec.models.base import NO_KIND, Named, read_settings
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.entity_settings import SourceConnection
from lakewright.spec.models.job import Case, Job
from lakewright.spec.models.trigger import Trigger
from lakewright.spec.reading.parsed_file import nodes_in
from lakewright.spec.reading.sections import RawDefinition
from lakewright.spec.suggestions import suggestion

WITHOUT_KINDS: Mapping[str, type[Named]] = {"job": Job, "test": Case, "entity": Entity, "trigger": Trigger}
"""Models of the categories without kinds."""

SOURCE = "source"
"""Kind of a connection with settings only, as in Datalake Foundation. It is the default kind."""

DATABASE = "jdbc"
"""Default kind of a connection with a `url`, as in Flowman."""

REPEATED = "template"
"""Kind of an entry that repeats another one of its category with a different environment."""

NULL = "null"
"""Kind that needs quotes in YAML."""

REPEATABLE = ("relation", "mapping", "target")
DEEPEST = 20


class Definer:
    """Makes the definitions of one project."""

    def __init__(self, registry: Registry, templates: Mapping[str, RawDefinition]) -> None:
        self._registry = registry
        self._specs: dict[str, TemplateSpec] = {}
        self._used = {name for each in templates.values() for name in _used_in(each.raw)}
        self._templates = {
            name: self._definition("template", each, str(each.raw.get("kind") or ""), TemplateSpec)
            for name, each in templates.items()
        }
        self._templates_checked = {name: definition.check() for name, definition in self._templates.items()}
        self._specs = {
            name: cast("TemplateSpec", spec)
            for name, (spec, _) in self._templates_checked.items()
            if spec and spec.kind
        }

    @property
    def templates(self) -> Mapping[str, Definition]:
        """The definitions of the templates."""
        return self._templates

    def template_faults(self) -> tuple[Fault, ...]:
        """Return the faults of the templates, once all entries are defined.

        Faults in the keys of a definition that a template makes are reported where the template is used.
        Here they are reported only for a template that nothing uses.
        """
        faults = [
            replace(fault, touches=(("template", name),))
            for name, (_, found) in self._templates_checked.items()
            for fault in found
        ]
        for template in self._templates.values():
            if template.kind not in self._registry.categories:
                remedy = suggestion(template.kind, self._registry.categories)
                why = f"there are no definitions of kind {template.kind!r}"
                why = why if template.kind else "'kind' is missing"
                faults.append(template.fault(why, "kind", remedy=remedy))
            elif template.name in self._specs and template.name not in self._used:
                faults += self._body_faults(template, self._specs[template.name])
        return tuple(faults)

    def _body_faults(self, template: Definition, spec: TemplateSpec) -> Iterator[Fault]:
        """Yield what is wrong with the definition in a template."""
        try:
            made = self._made(template, spec, template.name, spec.template)
            faults = replace(made, category="template").check()[1]
        except SpecError as error:
            faults = error.faults
        yield from (replace(each, touches=(template.key,)) for each in faults)

    def _made(
        self, template: Definition, spec: TemplateSpec, name: str, raw: Mapping[str, Any]
    ) -> Definition:
        """Return the definition in a template, under the name of its use.

        Raises:
            SpecError: The template has an unknown kind, or is a use of another one.
        """
        kind, place = spec.template.get("kind"), ("template", "kind")
        if isinstance(kind, str) and kind.startswith(PREFIX):
            why = f"a template can't use a template as a whole, as {kind!r} would"
            remedy = "Write its definition out, or use the other one in it, as for a target's `relation`."
            raise _error("template", template, why, *place, remedy=remedy)
        declared = RawDefinition(name, raw, template.document, (*template.path, "template"))
        return self._of_kind(template.subject, spec.kind, declared, str(kind), template.at(*place))

    def define(
        self, category: str, declared: RawDefinition, among: Mapping[str, RawDefinition] | None = None
    ) -> tuple[Definition | None, tuple[Fault, ...]]:
        """Return the definition of an entry, or None and the faults.

        Args:
            category: Category of the entry.
            declared: The entry.
            among: All entries of the category, which the entry may repeat.
        """
        self._used.update(_used_in(declared.raw))
        try:
            return self._defined(category, declared, among or {})
        except SpecError as error:
            return None, error.faults

    def _defined(
        self, category: str, declared: RawDefinition, among: Mapping[str, RawDefinition], depth: int = 0
    ) -> tuple[Definition | None, tuple[Fault, ...]]:
        if category in WITHOUT_KINDS:
            return self._definition(category, declared, category, WITHOUT_KINDS[category]), ()
        kind = declared.raw.get("kind")
        if category == "connection" and kind is None and "url" in declared.raw:
            kind = DATABASE
        if category == "connection" and kind in (None, SOURCE):
            return self._definition(category, declared, SOURCE, SourceConnection), ()
        if not isinstance(kind, str) or not kind:
            raise self._without_kind(category, declared)
        if kind.startswith(PREFIX):
            return self._use(category, declared, kind.removeprefix(PREFIX))
        if kind == REPEATED and category in REPEATABLE:
            return self._repeat(category, declared, among, depth)
        subject = f"{category} {declared.name!r}"
        return self._of_kind(subject, category, declared, kind, declared.at("kind")), ()

    def _without_kind(self, category: str, declared: RawDefinition) -> SpecError:
        kinds = self._registry.kinds(category)
        listed = ", ".join(kinds[:12])
        if "kind" not in declared.raw:
            return _error(category, declared, "'kind' is missing", remedy=f"Give it a kind: {listed}.")
        quoted = 'Write kind: "null" with quotes, or another kind' if NULL in kinds else "Give it a kind"
        return _error(category, declared, NO_KIND, "kind", remedy=f"{quoted}: {listed}.")

    def _of_kind(
        self, subject: str, category: str, declared: RawDefinition, kind: str, location: Location
    ) -> Definition:
        model = self._registry.find_or_none(category, kind)
        if model is None:
            fault = self._registry.fault(category, kind, location)
            raise SpecError([fault.about(subject)])
        return self._definition(category, declared, kind, model)

    def _repeat(
        self, category: str, declared: RawDefinition, among: Mapping[str, RawDefinition], depth: int
    ) -> tuple[Definition | None, tuple[Fault, ...]]:
        """Return the definition of another entry, with the texts of `environment` for its names."""
        name, bindings = _read_repetition(category, declared)
        if name not in among:
            why, remedy = f"there is no {category} {name!r}", suggestion(name, among)
            raise _error(category, declared, why, category, remedy=remedy)
        if depth > DEEPEST:
            why = "entries of kind template repeat each other in a cycle"
            raise _error(category, declared, why, category)
        inner, faults = self._defined(category, among[name], among, depth + 1)
        if inner is None:
            return None, faults
        raw = {**inner.raw, **_around(declared)}
        return replace(inner, name=declared.name, raw=raw, bindings=(*inner.bindings, *bindings)), ()

    def _definition(
        self, category: str, declared: RawDefinition, kind: str, model: type[Named]
    ) -> Definition:
        return Definition(
            category=category,
            name=declared.name,
            kind=kind,
            raw=declared.raw,
            model=model,
            document=declared.document,
            path=declared.path,
            registry=self._registry,
            templates=self._specs if category != "template" else {},
            shared=declared.shared,
        )

    def _use(
        self, category: str, declared: RawDefinition, name: str
    ) -> tuple[Definition | None, tuple[Fault, ...]]:
        template, spec = self._templates.get(name), self._specs.get(name)
        if template is None:
            why, remedy = f"there is no template {name!r}", suggestion(name, self._templates)
            raise _error(category, declared, why, "kind", remedy=remedy)
        if spec is None:
            return None, ()
        if spec.kind != category:
            why = f"template {name!r} is for a {spec.kind}, not for a {category}"
            raise _error(category, declared, why, "kind")
        made = self._made(template, spec, declared.name, {**spec.template, **_around(declared)})
        subject = f"{category} {declared.name!r}"
        bindings, faults = bind(subject, declared.raw, spec, lambda path: declared.at(*path))
        return replace(made, bindings=bindings), faults


def _error(
    category: str, declared: RawDefinition, why: str, *path: str | int, remedy: str | None = None
) -> SpecError:
    """Return the error of an entry that can't be defined."""
    return SpecError.of(f"{category} {declared.name!r}: {why}", location=declared.at(*path), remedy=remedy)


def _around(declared: RawDefinition) -> Mapping[str, Any]:
    """Return the keys that a use of a template, or a repetition, adds."""
    return {key: value for key, value in declared.raw.items() if key in AROUND}


def _used_in(raw: object) -> Iterator[str]:
    """Yield the names of the templates that a definition uses, at any depth."""
    for path, value in nodes_in(raw):
        if path[-1:] == ("kind",) and isinstance(value, str) and value.startswith(PREFIX):
            yield value.removeprefix(PREFIX)


def _read_repetition(category: str, declared: RawDefinition) -> tuple[str, tuple[Binding, ...]]:
    """Return the name of the repeated entry, and the bindings for it.

    Raises:
        SpecError: It has other keys, or no name.
    """
    subject, at = f"{category} {declared.name!r}", declared.at("environment")
    known = ("kind", category, "environment", *AROUND)
    faults = [
        Fault(f"unknown key {key!r}", declared.at(key), suggestion(key, known))
        for key in declared.raw
        if key not in known
    ]
    name, given = declared.raw.get(category), {}
    if not isinstance(name, str):
        faults.append(Fault(f"{category!r} is missing, the {category} to repeat", declared.at()))
    try:
        given = read_settings(declared.raw.get("environment"))
    except ValueError as error:
        faults.append(Fault(f"environment: {error}", at))
    if faults:
        raise SpecError(fault.about(subject) for fault in faults)
    return str(name), tuple(Binding(key, ValueType.STRING, str(text), at) for key, text in given.items())
