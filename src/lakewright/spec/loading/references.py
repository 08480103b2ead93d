"""Checks of references between definitions, and what jobs and tests inherit from those that they extend."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, MutableSequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import cast

from lakewright.errors import Fault
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.case import Case
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
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
    children: dict[str, list[str]] = {}
    for name, job in own.items():
        for parent in job.extends:
            children.setdefault(parent, []).append(name)
    for name, definition in definitions.items():
        heirs = _with_heirs(name, children) if own[name].executions else ()
        found = (inherited[each] for each in heirs if each in inherited)
        names = {target for job in found if isinstance(job, Job) for target in job.targets}
        for index, entry in enumerate(own[name].executions):
            if not names or any(map(has_expression, (*names, *entry.targets))):
                continue
            for place, pattern in enumerate(entry.targets):
                if not any(re.fullmatch(pattern, target) for target in names):
                    why = f"{definition.subject}: no target of the job matches {pattern!r}"
                    where = definition.at("executions", index, "targets", place)
                    warnings.append(Fault(why, where, suggestion(pattern, names)))


def _with_heirs(name: str, children: Mapping[str, Collection[str]]) -> set[str]:
    """Return a job and those that extend it, also through others."""
    found, left = {name}, {name}
    while left:
        left = {child for each in left for child in children.get(each, ())} - found
        found |= left
    return found


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
        yield Fault(
            f"{definition.subject}: {category} {name!r} belongs to another project",
            definition.at(*reference.path),
            "Mappings can read the relations and mappings of an imported project; nothing else of it can be "
            "used.",
            touches=(definition.key,),
        )
    elif not _is_among(imported.definitions(category), inner):
        similar = suggestion(inner, imported.definitions(category))
        yield Fault(
            f"{definition.subject}: there is no {category} {name!r}",
            definition.at(*reference.path),
            similar or f"Declare it in project {imported.name}, below `{_section(category)}`.",
            touches=(definition.key,),
        )


def _unknown_reference(definition: Definition, reference: Reference, declared: Known) -> Fault:
    known = declared.get(reference.category, ())
    message = f"{definition.subject}: there is no {reference.category} {reference.name!r}"
    relations = declared.get("relation", ()) if reference.category == "mapping" else ()
    remedy = (
        way_to_read(reference.name, relations)
        or suggestion(reference.name, known)
        or f"Declare it in a module, below `{_section(reference.category)}`."
    )
    # The other entities of a trigger have runs of their own, and the other targets of a job go on.
    is_one_of_several = (definition.category, *reference.path[:1]) in _SEVERAL
    touched = (reference.category, reference.name) if is_one_of_several else definition.key
    return Fault(message, definition.at(*reference.path), remedy, touches=(touched,))


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
