"""A few kinds that stand for the real ones, and projects made of texts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from lakewright.errors import SpecError
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions
from lakewright.spec.models.base import KindOf, Listed, Model, Named, NamedMap, Reference, TextMap, Texts
from lakewright.spec.project import Project

SOON = 5
"""Seconds within which hostile input ends even where coverage is measured; without, it is one."""

NOW = datetime(2022, 11, 15, 6, 30, tzinfo=UTC)


class InlineField(Model):
    name: str
    type: str = "string"


class InlineSchema(Named):
    fields: Listed[InlineField] = ()


class FileRelation(Named):
    deferred: ClassVar[frozenset[str]] = frozenset({"pattern"})

    location: str
    pattern: str | None = None
    format: str = "csv"
    header: bool = False
    limit: int | None = None
    options: TextMap = Field(default_factory=dict)
    columns: Texts = ()
    schema_: Annotated[Named, KindOf("schema", default="inline")] | None = Field(default=None, alias="schema")


class EntityRelation(Named):
    entity: str
    current: bool = False


class RelationMapping(Named):
    relation: Annotated[Named, KindOf("relation")] | str


class ValuesMapping(Named):
    records: tuple[Any, ...] = ()


class SqlMapping(Named):
    sql: str
    inputs: Texts = ()

    def references(self) -> Iterable[Reference]:
        return (Reference("mapping", name, ("inputs", index)) for index, name in enumerate(self.inputs))


class RelationTarget(Named):
    relation: str
    mapping: str | None = None
    before: Texts = ()
    enabled: bool = True

    def references(self) -> Iterable[Reference]:
        yield Reference("relation", self.relation, ("relation",))
        if self.mapping:
            yield Reference("mapping", self.mapping, ("mapping",))


class SqlAssertion(Named):
    query: str
    expected: Any = None


class ValidateTarget(Named):
    assertions: NamedMap[Annotated[Named, KindOf("assertion")]] = Field(default_factory=dict)


class JdbcConnection(Named):
    url: str
    password: str | None = None


KINDS = Registry(
    {
        "relation": {"file": FileRelation, "entity": EntityRelation},
        "schema": {"inline": InlineSchema},
        "mapping": {"sql": SqlMapping, "values": ValuesMapping, "relation": RelationMapping},
        "target": {"relation": RelationTarget, "validate": f"{__name__}:ValidateTarget"},
        "assertion": {"sql": SqlAssertion},
        "connection": {"jdbc": JdbcConnection},
    },
    absent={"relation": {"kafka": "Streams aren't read; use files."}},
)


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files into a folder, a `project.yml` of all of them included, and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    if "project.yml" not in files:
        modules = ", ".join(f'"{name}"' for name in files)
        (folder / "project.yml").write_text(f"name: tests\nmodules: [{modules}]\n", encoding="utf-8")
    return folder


def load(folder: Path, files: Mapping[str, str] | str, **given: Any) -> Project:
    """Return the project of these files; of a text alone, of one module."""
    write(folder, {"m.yml": files} if isinstance(files, str) else files)
    return load_project(folder, LoadOptions(**{"kinds": KINDS, "environ": {}, "clock": lambda: NOW, **given}))


def faults(folder: Path, files: Mapping[str, str] | str, **given: Any) -> list[str]:
    """Return the faults of loading these files, as users see them."""
    with pytest.raises(SpecError) as caught:
        load(folder, files, **given)
    return [str(fault) for fault in caught.value.faults]
