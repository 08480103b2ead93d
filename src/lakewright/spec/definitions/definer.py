"""Makes definitions from the entries of sections, by finding the class of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from lakewright.errors import Fault
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.definitions.template import AROUND, PREFIX, Binding, TemplateSpec, bind
from lakewright.spec.expressions.values import ValueType
from lakewright.spec.models.base import NO_KIND, Named, read_settings
from lakewright.spec.models.case import Case
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.entity_settings import SourceConnection
from lakewright.spec.models.job import Job
from lakewright.spec.models.trigger import Trigger
from lakewright.spec.reading.sections import RawDefinition
from lakewright.spec.suggestions import suggestion

__all__ = ["WITHOUT_KINDS", "Definer"]

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
        self._templates = {name: self._template(declared) for name, declared in templates.items()}
        self._templates_checked = {name: definition.check() for name, definition in self._templates.items()}
        self._specs = {
            name: cast("TemplateSpec", spec) for name, (spec, _) in self._templates_checked.items() if spec
        }

    @property
    def templates(self) -> Mapping[str, Definition]:
        """The definitions of the templates."""
        return self._templates

    def template_faults(self) -> tuple[Fault, ...]:
        """Return the faults of the templates, once all entries are defined.

        What is wrong with the keys of a definition that a template makes is told where the template is used.
        Only of a template that nothing uses is it told here.
        """
        faults = [
            replace(fault, touches=(("template", name),))
            for name, (_, found) in self._templates_checked.items()
            for fault in found
        ]
        for template in self._templates.values():
            if template.kind and template.kind not in self._registry.categories:
                remedy = suggestion(template.kind, self._registry.categories)
                faults.append(
                    Fault(
                        f"{template.subject}: there are no definitions of kind {template.kind!r}",
                        template.at("kind"),
                        remedy,
                        touches=(template.key,),
                    )
                )
            elif template.name in self._specs:
                faults += self._body_faults(template, self._specs[template.name])
        return tuple(faults)

    def _body_faults(self, template: Definition, spec: TemplateSpec) -> tuple[Fault, ...]:
        """Return what is wrong with the definition in a template."""
        kind = spec.template.get("kind")
        model = self._registry.find_or_none(spec.kind, kind) if isinstance(kind, str) else None
        if template.name in self._used:
            return ()
        if model is None:
            return (self._kind_fault(template, spec),)
        made = self._made(template, spec, spec.template, model)
        faults = replace(made, name=template.name, category="template").check()[1]
        return tuple(replace(each, touches=(template.key,)) for each in faults)

    def _kind_fault(self, template: Definition, spec: TemplateSpec) -> Fault:
        kind, location = str(spec.template.get("kind")), template.at("template", "kind")
        if kind.startswith(PREFIX):
            return Fault(
                f"{template.subject}: a template can't use a template as a whole, as {kind!r} would",
                location,
                "Write its definition out, or use the other one within it, as for a target's `relation`.",
                touches=(template.key,),
            )
        fault = self._registry.fault(spec.kind, kind, location)
        message = f"{template.subject}: {fault.message}"
        return Fault(message, location, fault.remedy, touches=(template.key,))

    def _made(
        self, template: Definition, spec: TemplateSpec, raw: Mapping[str, object], model: type[Named]
    ) -> Definition:
        """Return the definition in a template, which is still to be named for its use."""
        return Definition(
            category=spec.kind,
            name=template.name,
            kind=str(spec.template.get("kind")),
            raw=raw,
            model=model,
            document=template.document,
            path=(*template.path, "template"),
            registry=self._registry,
            templates=self._specs,
        )

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
        if category in WITHOUT_KINDS:
            return self._definition(category, declared, category, WITHOUT_KINDS[category]), ()
        kind = declared.raw.get("kind")
        if category == "connection" and kind is None and "url" in declared.raw:
            kind = DATABASE
        if category == "connection" and kind in (None, SOURCE):
            return self._definition(category, declared, SOURCE, SourceConnection), ()
        subject = f"{category} {declared.name!r}"
        if not isinstance(kind, str) or not kind:
            return None, (self._without_kind(subject, category, declared),)
        if kind.startswith(PREFIX):
            return self._use(category, declared, kind.removeprefix(PREFIX))
        if kind == REPEATED and category in REPEATABLE:
            return self._repeat(category, declared, among or {})
        return self._plain(category, declared, kind)

    def _without_kind(self, subject: str, category: str, declared: RawDefinition) -> Fault:
        kinds = self._registry.kinds(category)
        listed = ", ".join(kinds[:12])
        if "kind" not in declared.raw:
            return Fault(f"{subject}: 'kind' is missing", declared.at(), f"Give it a kind: {listed}.")
        quoted = 'Write kind: "null" with quotes, or another kind' if NULL in kinds else "Give it a kind"
        return Fault(f"{subject}: {NO_KIND}", declared.at("kind"), f"{quoted}: {listed}.")

    def _plain(
        self, category: str, declared: RawDefinition, kind: str
    ) -> tuple[Definition | None, tuple[Fault, ...]]:
        model = self._registry.find_or_none(category, kind)
        if model is None:
            fault = self._registry.fault(category, kind, declared.at("kind"))
            message = f"{category} {declared.name!r}: {fault.message}"
            return None, (Fault(message, fault.location, fault.remedy),)
        return self._definition(category, declared, kind, model), ()

    def _repeat(
        self, category: str, declared: RawDefinition, among: Mapping[str, RawDefinition], depth: int = 0
    ) -> tuple[Definition | None, tuple[Fault, ...]]:
        """Return the definition of another entry, with the texts of `environment` for its names."""
        subject = f"{category} {declared.name!r}"
        name, bindings, faults = _read_repetition(subject, category, declared)
        if faults:
            return None, faults
        other = among.get(name)
        if other is None:
            fault = Fault(
                f"{subject}: there is no {category} {name!r}", declared.at(category), suggestion(name, among)
            )
            return None, (fault,)
        if other.raw.get("kind") == REPEATED:
            if depth > DEEPEST:
                return None, (
                    Fault(
                        f"{subject}: entries of kind template repeat each other in a cycle",
                        declared.at(category),
                    ),
                )
            inner, faults = self._repeat(category, other, among, depth + 1)
        else:
            inner, faults = self.define(category, other, among)
        if inner is None:
            return None, faults
        around = {key: value for key, value in declared.raw.items() if key in AROUND}
        raw = {**inner.raw, **around}
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

    def _template(self, declared: RawDefinition) -> Definition:
        return self._definition("template", declared, str(declared.raw.get("kind") or ""), TemplateSpec)

    def _use(
        self, category: str, declared: RawDefinition, name: str
    ) -> tuple[Definition | None, tuple[Fault, ...]]:
        subject = f"{category} {declared.name!r}"
        template = self._templates.get(name)
        if template is None:
            remedy = suggestion(name, self._templates)
            return None, (Fault(f"{subject}: there is no template {name!r}", declared.at("kind"), remedy),)
        spec = self._specs.get(name)
        if spec is None:
            return None, ()
        if spec.kind != category:
            message = f"{subject}: template {name!r} is for a {spec.kind}, not for a {category}"
            return None, (Fault(message, declared.at("kind")),)
        kind = spec.template.get("kind")
        model = self._registry.find_or_none(category, kind) if isinstance(kind, str) else None
        if model is None:
            return None, (replace(self._kind_fault(template, spec), touches=()),)
        bindings, faults = bind(subject, declared.raw, spec, lambda path: declared.at(*path))
        around = {key: value for key, value in declared.raw.items() if key in AROUND}
        made = self._made(template, spec, {**spec.template, **around}, model)
        return replace(made, name=declared.name, bindings=bindings), faults


def _used_in(value: object) -> Iterator[str]:
    """Yield the names of the templates that a definition uses, at any depth."""
    if isinstance(value, Mapping):
        kind = value.get("kind")
        if isinstance(kind, str) and kind.startswith(PREFIX):
            yield kind.removeprefix(PREFIX)
        for inner in value.values():
            yield from _used_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _used_in(inner)


def _read_repetition(
    subject: str, category: str, declared: RawDefinition
) -> tuple[str, tuple[Binding, ...], tuple[Fault, ...]]:
    """Return the name of the repeated entry, the bindings for it, and the faults."""
    known = ("kind", category, "environment", *AROUND)
    faults = [
        Fault(f"{subject}: unknown key {key!r}", declared.at(key), suggestion(key, known))
        for key in declared.raw
        if key not in known
    ]
    name = declared.raw.get(category)
    if not isinstance(name, str):
        faults.append(Fault(f"{subject}: {category!r} is missing, the {category} to repeat", declared.at()))
    try:
        given = read_settings(declared.raw.get("environment"))
    except ValueError as error:
        faults.append(Fault(f"{subject}: environment: {error}", declared.at("environment")))
        given = {}
    at = declared.at("environment")
    bindings = [Binding(key, ValueType.STRING, str(text), at) for key, text in given.items()]
    return str(name), tuple(bindings), tuple(faults)
