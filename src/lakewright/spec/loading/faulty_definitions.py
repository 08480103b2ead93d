"""The definitions that faults in a project's files touch; the others can be used all the same.

A definition is faulty if it has a fault, or refers to a faulty one. What can't be known counts as faulty.

Source: the rules of the server, "Triggers" (failures wait for the operator, the others go on).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lakewright.errors import Fault, Location
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.job import Job
from lakewright.spec.models.trigger import Trigger
from lakewright.spec.reading.parsed_file import DOUBLED, ParsedFile, texts_in
from lakewright.spec.reading.sections import CATEGORIES, SHARED
from lakewright.spec.reading.yaml_reader import LONGEST

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
        if path.stat().st_size > LONGEST:
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
    if isinstance(model, Job):
        own = [("target", name) for name in model.targets]
        if own and not model.extends and all(key in faulty for key in own):
            return faulty[own[0]]
        references = [each for each in references if each.path[:1] != ("targets",)]
    if isinstance(model, Trigger):
        own = [("entity", name) for name in model.entities]
        if own and all(key in faulty for key in own):
            return faulty[own[0]]
        references = [each for each in references if each.path[:1] != ("entities",)]
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
