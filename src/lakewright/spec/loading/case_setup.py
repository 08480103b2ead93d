"""The setup of a test: the project with the test's mappings, relations and targets in place of its own.

Source: the project files' rules, `tests`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from lakewright.errors import Fault, SpecError
from lakewright.spec.definitions.definer import Definer
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.models.job import CASE_SECTIONS, Case
from lakewright.spec.project import Project
from lakewright.spec.reading.parsed_file import texts_in
from lakewright.spec.reading.sections import RawDefinition
from lakewright.spec.suggestions import suggestion

_FOR_PEOPLE = ("description", "metadata")
_OVERRIDDEN = ("mapping", "relation")

_Overrides = Mapping[str, Mapping[str, Definition]]
"""Definitions by category and name."""


@dataclass(frozen=True, slots=True)
class CaseSetup:
    """The setup of a test, including what it inherits.

    Attributes:
        name: Name of the test.
        project: The project with the test's overrides, fixtures and environment.
        description: Description of the test.
        targets: Names of the project's targets that the test builds.
        fixtures: Names of the test's own targets.
        assertions: The assertions, by name.
    """

    name: str
    project: Project
    description: str | None
    targets: tuple[str, ...]
    fixtures: tuple[str, ...]
    assertions: Mapping[str, Definition]


def set_up_case(project: Project, name: str) -> CaseSetup:
    """Return the setup of a test of the project.

    Raises:
        SpecError: There is no such test, or it is invalid.
    """
    project.named("test", name, project.tests)
    chain = _chain(project, name, ())
    cases = [_read(definition) for definition in chain]
    whole = cases[-1].extending(cases[:-1])
    found = _definitions(project, chain)
    scope = project.scope.instance(whole.environment)
    overrides = {category: found[category] for category in _OVERRIDDEN}
    changed = replace(
        _overriding(project.within(scope), overrides), targets={**project.targets, **found["target"]}
    )
    fixtures = tuple(found["target"])
    return CaseSetup(name, changed, whole.description, whole.targets, fixtures, found["assertion"])


def _overriding(project: Project, overrides: _Overrides) -> Project:
    """Return a project with definitions in place of its own, and of those of projects that it imports."""
    own: dict[str, dict[str, Definition]] = {category: {} for category in _OVERRIDDEN}
    imported: dict[str, dict[str, dict[str, Definition]]] = {}
    for category, definitions in overrides.items():
        for name, definition in definitions.items():
            home, _, inner = name.partition("/")
            if inner and home in project.imports:
                others = imported.setdefault(home, {each: {} for each in _OVERRIDDEN})
                others[category][inner] = replace(definition, name=inner)
            else:
                own[category][name] = definition
    return replace(
        project,
        imports={
            name: _overriding(each, imported[name]) if name in imported else each
            for name, each in project.imports.items()
        },
        mappings={**project.mappings, **own["mapping"]},
        relations={**project.relations, **own["relation"]},
        overridden={
            category: {n: each for n, each in project.definitions(category).items() if n in own[category]}
            for category in _OVERRIDDEN
        },
    )


def _chain(project: Project, name: str, path: tuple[str, ...]) -> list[Definition]:
    """Return the tests that a test extends, the most distant first, and the test itself, each once."""
    definition = project.tests[name]
    parents = _read(definition).extends
    chain = {
        parent.name: parent
        for other in parents
        if other in project.tests and other not in path
        for parent in _chain(project, other, (*path, name))
    }
    return [*chain.values(), definition]


def _read(definition: Definition) -> Case:
    case, faults = definition.check()
    if faults:
        raise SpecError(faults)
    # The definitions of a test may contain expressions in any field. They are read separately.
    raw: dict[str, Any] = {key: value for key, value in definition.raw.items() if key not in CASE_SECTIONS}
    return cast("Case", case or replace(definition, raw=raw).check()[0])


def _definitions(project: Project, chain: list[Definition]) -> dict[str, dict[str, Definition]]:
    definer = Definer(project.registry, project.templates)
    found: dict[str, dict[str, Definition]] = {category: {} for category in CASE_SECTIONS.values()}
    faults: list[Fault] = []
    for case in chain:
        for section, category in CASE_SECTIONS.items():
            for name, raw in (case.raw.get(section) or {}).items():
                mocking = _with_partitions(project, name, raw) if category == "relation" else raw
                declared = RawDefinition(name, mocking, case.document, (*case.path, section, name))
                definition, wrong = definer.define(category, declared)
                faults += wrong
                if definition is not None:
                    found[category][name] = definition
                    if section.startswith("override"):
                        faults += _unknown(project, chain, definition)
    if faults:
        raise SpecError(faults)
    return found


def _with_partitions(project: Project, name: str, raw: Any) -> Any:
    """Return a mock with the partition columns of the relation that it mocks, unless it declares its own."""
    if not isinstance(raw, Mapping) or raw.get("kind") != "mock" or "partitions" in raw:
        return raw
    home, inner = _home(project, name)
    mocked = home.relations.get(str(raw.get("relation") or inner))
    partitions = None if mocked is None else mocked.raw.get("partitions")
    return raw if partitions is None else {**raw, "partitions": partitions}


def _home(project: Project, name: str) -> tuple[Project, str]:
    """Return the project that declares what is named, which may be an imported one, and its name there."""
    home, _, inner = name.partition("/")
    return _home(project.imports[home], inner) if inner and home in project.imports else (project, name)


def _unknown(project: Project, chain: list[Definition], override: Definition) -> list[Fault]:
    """Return the fault of an override that replaces nothing, and that nothing else in the test names.

    The test would then read what it should replace.
    """
    home, name = _home(project, override.name)
    known = home.definitions(override.category)
    if name in known:
        return []
    named = re.compile(rf"\b{re.escape(name)}\b")
    if home is project and any(
        named.search(text) for case in chain for text in texts_in(case.raw, *_FOR_PEOPLE)
    ):
        return []
    which = "the project" if home is project else f"the project {home.name}"
    why = f"{which} has no {override.category} {name!r} to override"
    return [Fault(why, override.at(), remedy=suggestion(name, known))]
