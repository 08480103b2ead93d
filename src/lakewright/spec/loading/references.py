"""References between definitions: those that lead nowhere, what they hand down, and what faults touch.

A definition is faulty if it has a fault, or refers to a faulty one. What can't be known counts as faulty; the
other definitions can be used all the same.

Source: the rules of the server, "Triggers" (failures wait for the operator, the others go on).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, cast

from lakewright.errors import Fault, Location
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.job import Case, Job
from lakewright.spec.models.trigger import Trigger
from lakewright.spec.project import Project
from lakewright.spec.reading.files import LONGEST_YAML
from lakewright.spec.reading.parsed_file import DOUBLED, ParsedFile, texts_in
from lakewright.spec.reading.sections import CATEGORIES, SHARED
from lakewright.spec.suggestions import suggestion, way_to_read

Known = Mapping[str, Collection[str]]

_SEVERAL = (("trigger", "entities"), ("job", "targets"))

_INHERITING = ("job", "test")

_READABLE = ("relation", "mapping")
"""Categories whose definitions other projects can use."""

_COMMON_PARENT = (100, "Let them extend one common parent.")
LONGEST_CHAINS = {
    "mapping": (200, "Write the rows of one of them to a relation, and read that."),
    "job": _COMMON_PARENT,
    "test": _COMMON_PARENT,
}
"""How long chains may be, and what to do instead: Spark cannot plan the query of more mappings."""


def check_references(
    definitions: Mapping[str, Mapping[str, Definition]],
    models: Mapping[str, Mapping[str, Named]],
    known: Known,
    imports: Mapping[str, Project | None],
    faults: MutableSequence[Fault],
) -> None:
    """Add a fault for each reference to an unknown definition. Names with expressions are not checked.

    Invalid definitions count as known. `project/name` is a definition of an imported project, and
    `name:output` an output of a mapping.

    Args:
        definitions: The definitions of the project, by category and name.
        models: Those that are valid, and the valid parts of the others.
        known: The names of all definitions, by category.
        imports: The imported projects; None for one that could not be loaded, whose definitions are unknown.
        faults: Receives the faults.
    """
    for category, of_category in definitions.items():
        for name, definition in of_category.items():
            for reference in _references_of(definition, models[category].get(name)):
                if has_expression(reference.name):
                    continue
                home, slash, inner = reference.name.partition("/")
                if slash and home in imports:
                    faults.extend(_import_faults(definition, reference, inner, imports[home]))
                elif not _is_among(known.get(reference.category, ()), reference.name):
                    faults.append(_unknown_reference(definition, reference, known))
    for category in ("mapping", "target", *_INHERITING):
        faults.extend(_order_faults(category, definitions[category], models[category]))


def check_executions(
    definitions: Mapping[str, Definition],
    models: Mapping[str, Named],
    inherited: Mapping[str, Named],
    warnings: MutableSequence[Fault],
) -> None:
    """Add a warning for each pattern in `executions` that matches no target of its job.

    Nothing is reported while a job can't be read: what it hands down is not known.

    Args:
        definitions: The definitions of jobs.
        models: The jobs with what they declare themselves.
        inherited: The jobs with what they inherit: those that extend a job have its entries.
        warnings: Receives the warnings.
    """
    own = {name: job for name, job in models.items() if isinstance(job, Job)}
    if own.keys() != definitions.keys():
        return
    jobs = [job for job in inherited.values() if isinstance(job, Job)]
    for name, definition in definitions.items():
        for index, entry in enumerate(own[name].executions):
            heirs = (job for job in jobs if any(each is entry for each in job.executions))
            names = {target for job in heirs for target in job.targets}
            if not names or any(map(has_expression, (*names, *entry.targets))):
                continue
            for place, pattern in enumerate(entry.targets):
                if not any(re.fullmatch(pattern, target) for target in names):
                    why, where = f"no target of the job matches {pattern!r}", (index, "targets", place)
                    remedy = suggestion(pattern, names)
                    warnings.append(definition.fault(why, "executions", *where, remedy=remedy))


def _references_of(definition: Definition, model: Named | None) -> tuple[Reference, ...]:
    """Return the references of a definition; of an entity that contradicts itself, its connection."""
    if model is not None:
        return (*model.references(), *model.links(), *model.mentions())
    connection = definition.raw.get("connection") if definition.category == "entity" else None
    return (Reference("connection", connection, ("connection",)),) if isinstance(connection, str) else ()


def _order_faults(
    category: str, definitions: Mapping[str, Definition], models: Mapping[str, Named]
) -> Iterator[Fault]:
    """Yield a fault if definitions of a category depend on each other in a cycle or in too long a chain."""
    edges = _edges(category, models)
    depths: dict[str, int] = {}
    try:
        for name in TopologicalSorter(edges).static_order():
            depths[name] = 1 + max((depths[other] for other in edges[name]), default=0)
            longest, remedy = LONGEST_CHAINS.get(category, (len(models), None))
            if depths[name] > longest:
                why = f"{category} {name!r} is the end of a chain of more than {longest} {category}s"
                yield Fault(why, definitions[name].at(), remedy, touches=((category, name),))
                return
    except CycleError as cycle:
        chain = [str(name) for name in reversed(cycle.args[1])]
        how, where = ("extend", ("extends",)) if category in _INHERITING else ("depend on", ())
        yield Fault(
            f"{category}s {how} each other in a cycle: {' -> '.join(chain)}",
            definitions[chain[0]].at(*where),
            "Remove one of the links.",
            touches=tuple((category, name) for name in chain),
        )


def _edges(category: str, models: Mapping[str, Named]) -> Mapping[str, set[str]]:
    """Return the dependencies of each definition, including the `after` and `before` of targets."""
    edges: dict[str, set[str]] = {name: set() for name in models}
    for name, model in models.items():
        for reference in (*model.references(), *model.links()):
            other = reference.name.partition(":")[0]
            if reference.category == category and other in edges:
                earlier, later = (name, other) if reference.path[:1] == ("before",) else (other, name)
                edges[later].add(earlier)
    return edges


def _is_among(known: Collection[str], name: str) -> bool:
    return name in known or name.partition(":")[0] in known


def _import_faults(
    definition: Definition, reference: Reference, inner: str, imported: Project | None
) -> Iterator[Fault]:
    """Yield the fault of a reference to a definition of an imported project, if there is one."""
    if imported is None:
        return
    category, name = reference.category, reference.name
    if category not in _READABLE or (definition.category, category) == ("target", "relation"):
        yield definition.fault(
            f"{category} {name!r} belongs to another project",
            *reference.path,
            remedy="Mappings can read the relations and mappings of an imported project; nothing else of it "
            "can be used.",
        )
    elif not _is_among(imported.definitions(category), inner):
        home = name.removesuffix(inner)
        similar = suggestion(name, (f"{home}{each}" for each in imported.definitions(category)))
        remedy = similar or f"Declare it in project {imported.name}, below `{_section(category)}`."
        yield definition.fault(f"there is no {category} {name!r}", *reference.path, remedy=remedy)


def _unknown_reference(definition: Definition, reference: Reference, declared: Known) -> Fault:
    known = declared.get(reference.category, ())
    message = f"there is no {reference.category} {reference.name!r}"
    relations = declared.get("relation", ()) if reference.category == "mapping" else ()
    remedy = (
        way_to_read(reference.name, relations)
        or suggestion(reference.name, known)
        or f"Declare it in a module, below `{_section(reference.category)}`."
    )
    # The other entities of a trigger have runs of their own, and the other targets of a job go on.
    is_one_of_several = (definition.category, *reference.path[:1]) in _SEVERAL
    found = definition.fault(message, *reference.path, remedy=remedy)
    return replace(found, touches=((reference.category, reference.name),)) if is_one_of_several else found


def _section(category: str) -> str:
    return "entities" if category == "entity" else f"{category}s"


def inherit(category: str, models: Mapping[str, Named]) -> dict[str, Named]:
    """Return jobs, or tests, with what they inherit; those in a cycle and unknown parents are left alone."""
    whole: dict[str, Named] = {}
    order = TopologicalSorter(_edges(category, models))
    with suppress(CycleError):  # `check_references` reports it; what is outside of the cycle has an order
        order.prepare()
    while names := order.get_ready():
        for name in names:
            own = cast("Job | Case", models[name])
            parents = [whole[parent] for parent in own.extends if parent in whole]
            whole[name] = own.extending(parents)  # type: ignore[arg-type]  # parents are of the same category
        order.done(*names)
    return {name: whole.get(name, model) for name, model in models.items()}


Key = tuple[str, str]
"""Category and name of a definition."""

SETTINGS = (*SHARED, "profiles")
"""The sections whose content may concern every definition."""

_ENTRY = re.compile(r"""^([ \t]*)["']?([A-Za-z_]\w*)["']?\s*:""", re.MULTILINE)
_FLOW = re.compile(rf"""["']?\b({"|".join(SETTINGS)})["']?\s*:""")


def touching(faults: Iterable[Fault], *keys: Key) -> Iterator[Fault]:
    """Yield faults of these definitions, unless they name other definitions themselves."""
    for fault in faults:
        yield fault if fault.touches else replace(fault, touches=keys)


def in_module(path: Path, document: ParsedFile, fault: Fault) -> Fault:
    """Return a fault that was found while a module's file was read, with what it touches."""
    if document.value is None:
        touched: tuple[Key, ...] = () if _may_hold_settings(path) else (("module", document.file),)
        return replace(fault, touches=touched)
    return replace(fault, touches=tuple(_around(document, fault)))


def of_import(name: str, fault: Fault, location: Location) -> Fault:
    """Return the fault of an imported project as one of the project that imports it at a location."""
    return Fault(f"import {name!r}: {fault.message}", fault.location or location, fault.remedy)


def _may_hold_settings(path: Path) -> bool:
    """Return whether a file that is no YAML or JSON may have a section that concerns every definition."""
    try:
        if path.stat().st_size > LONGEST_YAML:
            return True
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return True
    entries = _ENTRY.findall(text)
    if not entries or re.search(r"^\s*[{\[]", text, re.MULTILINE):
        return _FLOW.search(text) is not None
    outermost = min(len(indent) for indent, _ in entries)
    return any(name in SETTINGS for indent, name in entries if len(indent) == outermost)


def _around(document: ParsedFile, fault: Fault) -> Iterator[Key]:
    """Yield the definitions in which a key occurs twice; none if it may be anything else."""
    section, *steps = fault.details.get(DOUBLED, ("",))
    if section not in CATEGORIES:
        return
    if not steps:
        yield "module", document.file
    content = document.value[section]
    entries = content.items() if isinstance(content, dict) else enumerate(content or ())
    for step, raw in entries:
        if step in steps[:1] or not steps:
            name = raw.get("name") if isinstance(step, int) and isinstance(raw, dict) else step
            yield CATEGORIES[section], str(name)


def find_faulty(
    declared: Mapping[str, Collection[str]],
    definitions: Mapping[str, Mapping[str, Definition]],
    models: Mapping[str, Mapping[str, Named]],
    faults: Sequence[Fault],
) -> Mapping[Key, Fault]:
    """Return the faulty definitions, each with the fault that it waits for.

    A trigger is not faulty because some of its `entities` are: the others have runs of their own. Neither is
    a job because some of its targets are: they wait, and the others go on.

    Args:
        declared: The names in the files, by category.
        definitions: The definitions that could be made of them.
        models: The definitions that could be checked.
        faults: The faults of the load.
    """
    faulty = {key: fault for fault in reversed(faults) for key in fault.touches}
    for category, names in declared.items():
        for name in names:
            if name not in definitions.get(category, {}):
                faulty.setdefault((category, name), faults[0])
            elif (fault := faulty.get((category, _written_name(definitions[category][name])))) is not None:
                faulty.setdefault((category, name), fault)
    grows = True
    while grows:
        more = dict(_referring(definitions, models, faulty))
        faulty |= more
        grows = bool(more)
    return {key: fault for key, fault in faulty.items() if key[0] != "module"}


def _written_name(definition: Definition) -> str:
    """Return the name as written: several entities with the same name are known by their ids."""
    return str(definition.raw.get("name") or definition.name) if definition.category == "entity" else ""


def _referring(
    definitions: Mapping[str, Mapping[str, Definition]],
    models: Mapping[str, Mapping[str, Named]],
    faulty: Mapping[Key, Fault],
) -> Iterator[tuple[Key, Fault]]:
    """Yield the definitions that refer to faulty ones, as far as they are not faulty yet."""
    for category, of_category in definitions.items():
        for name, definition in of_category.items():
            if definition.key in faulty:
                continue
            model = models.get(category, {}).get(name)
            if model is not None:
                found = _needed(model, faulty)
            elif category == "entity":
                found = faulty.get(("connection", str(definition.raw.get("connection"))))
            else:
                found = _named(definition.raw, faulty)
            if found is not None:
                yield definition.key, found


def _needed(model: Named, faulty: Mapping[Key, Fault]) -> Fault | None:
    """Return the fault that a definition waits for because of what it refers to; None if there is none."""
    references = [*model.references(), *model.links()]
    for kind, category, field in ((Job, "target", "targets"), (Trigger, "entity", "entities")):
        if isinstance(model, kind):
            own = [(category, name) for name in getattr(model, field)]
            if own and not getattr(model, "extends", ()) and all(key in faulty for key in own):
                return faulty[own[0]]
            references = [each for each in references if each.path[:1] != (field,)]
    return next((fault for each in references if (fault := _behind(each, faulty)) is not None), None)


def _behind(reference: Reference, faulty: Mapping[Key, Fault]) -> Fault | None:
    if has_expression(reference.name):  # it may be any of its category
        return next(
            (fault for (category, _), fault in faulty.items() if category == reference.category), None
        )
    return faulty.get((reference.category, reference.name)) or faulty.get(
        (reference.category, reference.name.partition(":")[0])
    )


def _named(raw: Any, faulty: Mapping[Key, Fault]) -> Fault | None:
    """Return the fault of a definition whose name occurs in a text, or of any if the text has expressions."""
    for text in texts_in(raw):
        if has_expression(text):
            return next(iter(faulty.values()))
        if found := next((fault for (_, name), fault in faulty.items() if name and name in text), None):
            return found
    return None
