"""Pages of the reference: prose from `templates/`, tables from the classes that read the files.

A line `<!-- keys Job -->` in a template becomes the table of that class's keys, `<!-- kinds relation -->` a
section for each kind of a category, with its example from `docs/examples/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from scripts.reference.keys import keys_of, summary, table

from lakewright.app import registry
from lakewright.connections.connection import Connection
from lakewright.documentation.checks.check import Check
from lakewright.mappings.mapping import Mapping as MappingModel
from lakewright.relations.relation import Relation
from lakewright.run.hooks.hook import Hook
from lakewright.schemas.schema import Schema
from lakewright.spec.definitions.template import TemplateSpec
from lakewright.spec.loading.loader import ProjectFile
from lakewright.spec.models.base import Model, Named
from lakewright.spec.models.case import Case
from lakewright.spec.models.column import Column
from lakewright.spec.models.documentation import DocumentationFile
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.entity_settings import EntitySettings, SourceConnection
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.models.job import Execution, Job, MetricBoard, Parameter
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.watermark import Watermark
from lakewright.targets.assertions.assertion import Assertion
from lakewright.targets.datasets.dataset import Dataset
from lakewright.targets.measures.measure import Measure
from lakewright.targets.target import Target

__all__ = ["EXAMPLES", "PAGES", "kinds_of", "page"]

ROOT = Path(__file__).parents[2]
TEMPLATES = Path(__file__).parent / "templates"
EXAMPLES = ROOT / "docs" / "examples"
PAGES = {template.name: ROOT / "docs" / "reference" / template.name for template in TEMPLATES.glob("*.md")}
"""Where each page is written, by the name of its template."""

BASES: Mapping[str, type[Named]] = {
    "connection": Connection,
    "relation": Relation,
    "mapping": MappingModel,
    "schema": Schema,
    "target": Target,
    "assertion": Assertion,
    "check": Check,
    "measure": Measure,
    "dataset": Dataset,
    "hook": Hook,
}
"""What the kinds of a category have in common."""

LEVELS = {
    **dict.fromkeys(("assertion", "check", "connection", "dataset", "measure"), "###"),
    "hook": "####",
}
"""Headings of kinds that stand on a page with others."""

PLAIN: tuple[type[Model], ...] = (
    *BASES.values(),
    *(Case, Column, DocumentationFile, Entity, EntitySettings, Execution, Field, Job, LakeSettings),
    *(MetricBoard, Parameter, PartitionField, ProjectFile, SourceConnection, TemplateSpec, Watermark),
)
MODELS = {model.__name__: model for model in PLAIN}

DIRECTIVE = re.compile(r"^<!-- (?P<what>keys|kinds) (?P<name>\w+)(?: without (?P<left>[\w, ]+))? -->$", re.M)
HEAD = "<!-- Made by `make docs` from scripts/reference and docs/examples. -->\n\n"


def page(name: str) -> str:
    """Return a page, made from its template."""
    return HEAD + DIRECTIVE.sub(_filled, (TEMPLATES / name).read_text())


def kinds_of(category: str) -> Iterator[tuple[str, tuple[str, ...], type[Named]]]:
    """Yield each kind of a category, its other names, and its class, in the order of the names.

    Of several names of a class the one that its module has comes first.
    """
    kinds = registry()
    names: dict[type[Named], list[str]] = {}
    for kind in kinds.kinds(category):
        with suppress(ModuleNotFoundError):  # announced, and not written yet
            names.setdefault(kinds.find(category, kind), []).append(kind)
    found = [(_own_name(model, each), each, model) for model, each in names.items()]
    for own, each, model in sorted(found, key=lambda entry: entry[0].lower()):
        yield own, tuple(name for name in each if name != own), model


def _own_name(model: type[Named], names: list[str]) -> str:
    module = model.__module__.rpartition(".")[2].replace("_", "")
    return next((name for name in names if name.lower() == module), names[0])


def _filled(directive: re.Match[str]) -> str:
    if directive["what"] == "kinds":
        return "\n\n".join(_kind(directive["name"], *entry) for entry in kinds_of(directive["name"]))
    left = (directive["left"] or "").replace(" ", "").split(",")
    model = MODELS[directive["name"]]
    keys = [key for key in keys_of(model) if key.name.partition(".")[0].removesuffix("[]") not in left]
    return table(keys)


def _kind(category: str, name: str, others: tuple[str, ...], model: type[Named]) -> str:
    level = LEVELS.get(category, "##")
    also = f"Also written {' or '.join(f'`{other}`' for other in others)}.\n\n" if others else ""
    example = (EXAMPLES / category / f"{name}.yml").read_text().strip()
    own = table(list(keys_of(model, without=BASES[category])))
    return f"{level} {name}\n\n{summary(model)}\n\n{also}{own}\n\n```yaml\n{example}\n```"
