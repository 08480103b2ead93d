"""The definitions of a project: list a section, show one definition, or the types of an entity's columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.lake.files import LocalFiles
from lakewright.lake.observation import observe_table
from lakewright.manifest.plain_values import document_of
from lakewright.run.kinds import registry
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.expressions.secrets import HIDDEN, is_secret_header, is_secret_name
from lakewright.spec.json_schema import documentation_schema, entities_schema, module_schema, project_schema
from lakewright.spec.loading.short_form import QUERY
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.spec.reading.files import PROJECT_FILES, find_project, project_file, read_document
from lakewright.spec.suggestions import suggestion
from lakewright.transform.system_columns import SystemColumns

SECTIONS = {
    "job": "jobs",
    "target": "targets",
    "entity": "entities",
    "relation": "relations",
    "mapping": "mappings",
    "connection": "connections",
}
"""The sections of a project, each by the word for one definition in it."""


def list_section(app: App, section: str) -> list[dict[str, Any]]:
    """Return the definitions in a section of the project: jobs, entities, targets, relations or mappings."""
    project = app.project
    if section == "jobs":
        return [_job(name, job) for name, job in project.jobs.items()]
    if section == "entities":
        return [_entity(name, entity) for name, entity in project.entities.items()]
    definitions: Mapping[str, Any] = getattr(project, section)
    return [
        {
            "name": name,
            "kind": found.kind,
            "location": str(found.at()),
            "description": found.raw.get("description"),
        }
        for name, found in definitions.items()
    ]


def show_definition(app: App, category: str, name: str) -> dict[str, Any]:
    """Return one definition of the project with its location, without secrets.

    An entity includes the settings of its connection.

    Raises:
        SpecError: The project has no definition of this name, or it has a fault.
    """
    found: Any = app.project.named(category, name, getattr(app.project, SECTIONS[category]))
    if category in ("job", "entity"):
        declared = found.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        location = None
    else:
        declared, location = found.raw, str(found.at())
    return {
        "category": category,
        "name": name,
        "location": location,
        "definition": _without_secrets(declared),
    }


def long_form(app: App, name: str) -> dict[str, Any]:
    """Return everything of a name by section, as a module in the long form declares it, without secrets.

    A table of the short form has its query under another name, which is among them.

    Raises:
        UsageError: The project has nothing of this name.
    """
    wanted, found = (name, f"{name}.{QUERY}"), dict[str, Any]()
    sections = {category: _raw_definitions(app.project, category) for category in SECTIONS}
    entity = sections["entity"].get(name)
    source = () if entity is None else (str(entity.raw.get("connection")),)
    for category, section in sections.items():
        for each in (*wanted, *(source if category == "connection" else ())):
            if each in section:
                raw = _plain(_without_secrets(section[each].raw))
                found.setdefault(SECTIONS[category], {})[each] = raw
    if not found:
        known = {each for section in sections.values() for each in section}
        raise UsageError(f"nothing is named {name!r}", remedy=suggestion(name, known))
    return found


def _raw_definitions(project: Project, category: str) -> Mapping[str, Definition]:
    if category == "entity":
        return project.entity_definitions
    return {} if category == "job" else project.definitions(category)


def _plain(value: Any) -> Any:
    """Return a value with the words true and false as such, which need no quotes in YAML."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _job(name: str, job: Job) -> dict[str, Any]:
    return {
        "name": name,
        "parameters": [parameter.name for parameter in job.parameters],
        "targets": list(job.targets),
        "description": job.description,
    }


def _entity(name: str, entity: Entity) -> dict[str, Any]:
    named = ("id", "strategy", "connection", "group", "destination", "enabled")
    return {"name": name, **document_of(entity, *named)}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        # A parameter has its name and its default side by side.
        hidden = "default" if is_secret_name(str(value.get("name", ""))) else None
        return {
            key: HIDDEN
            if isinstance(inner, str) and (key == hidden or _is_secret(str(key)))
            else _without_secrets(inner)
            for key, inner in value.items()
        }
    return [_without_secrets(inner) for inner in value] if isinstance(value, list | tuple) else value


def _is_secret(key: str) -> bool:
    return is_secret_name(key) or is_secret_header(key)


def entity_types(app: App, name: str) -> dict[str, Any]:
    """Return the columns of an entity's table with their types, and what gave them: without Spark.

    `origin` is `declared`, `inferred` for a type that the first slice with the column gave it, and to which
    later slices are held, or `system`. `declared` is the declared type if the table keeps another one.
    Without a table, only declared columns are known.

    Raises:
        UsageError: The project has no such entity.
    """
    entity = app.project.entities.get(name)
    if entity is None:
        raise UsageError(f"there is no entity {name!r}", remedy=suggestion(name, app.project.entities))
    return {"entity": name, "columns": list(_typed_columns(app, entity))}


def _typed_columns(app: App, entity: Entity) -> Iterator[dict[str, Any]]:
    settings = app.lake.settings
    system = SystemColumns(settings.systemfield_prefix, entity.destination).all
    state = observe_table(app.lake, entity.places(settings).silver)
    declared = {each.silver.lower(): each for each in entity.columns if not each.omit}
    for kept in state.columns:
        column = declared.pop(kept.name.lower(), None)
        own = None if column is None else column.type
        origin = "system" if kept.name.lower() in system else "inferred" if own is None else "declared"
        other = None if own is None or own.ddl == kept.type.ddl else own.ddl
        yield {"column": kept.name, "type": kept.type.ddl, "origin": origin, "declared": other}
    for column in declared.values():
        kind = None if column.type is None else column.type.ddl
        yield {
            "column": column.silver,
            "type": kind,
            "origin": None if kind is None else "declared",
            "declared": None,
        }


FOLDER = "schemas"
PROJECT, MODULE, DOCUMENTATION, ENTITIES = (
    f"{name}.schema.json" for name in ("project", "module", "documentation", "entities")
)


@dataclass(frozen=True, slots=True)
class EditorSchemas:
    """Schemas that were written.

    Attributes:
        files: Their names.
        vscode: The settings with which VS Code's YAML extension uses them.
    """

    folder: Path
    files: tuple[str, ...]
    vscode: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the document that `schema -o json` prints."""
        return {"folder": str(self.folder.resolve()), "files": list(self.files), "vscode": self.vscode}


def write_schemas(folder: Path | None = None, *, project: Path | None = None) -> EditorSchemas:
    """Write the schemas of project.yml, modules, documentation.yml and entity files.

    Args:
        folder: Folder to write to; by default `schemas` of the project, or of the current folder.
        project: Folder of the project; by default the nearest one from the current folder up, if any.
    """
    project = project or _found()
    folder = folder or (project_file(project).parent if project else Path.cwd()) / FOLDER
    schemas = _schemas()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in schemas.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    modules = _modules(project) if project else ["model"]
    return EditorSchemas(folder, tuple(schemas), _vscode_settings(folder, project, modules))


def _found() -> Path | None:
    try:
        return find_project(Path.cwd())
    except UsageError:
        return None


def _schemas() -> Mapping[str, Mapping[str, Any]]:
    kinds = registry()
    return {
        PROJECT: project_schema(kinds),
        MODULE: module_schema(kinds),
        DOCUMENTATION: documentation_schema(),
        ENTITIES: entities_schema(kinds),
    }


def _modules(project: Path) -> list[str]:
    file = project_file(project)
    value = read_document(file, file.parent)[0].value
    modules = value.get("modules") if isinstance(value, dict) else None
    listed = modules if isinstance(modules, list) else [modules]
    return [module for module in listed if isinstance(module, str)] or ["model"]


def _vscode_settings(folder: Path, project: Path | None, modules: list[str]) -> dict[str, Any]:
    base = (project_file(project).parent if project else Path.cwd()).resolve()
    absolute = folder.resolve()
    where = (
        f"./{absolute.relative_to(base).as_posix()}" if absolute.is_relative_to(base) else absolute.as_uri()
    )
    yaml = [path for module in modules for path in _globs(module, (".yml", ".yaml"))]
    entities = [path for module in modules for path in _globs(module, (".json",))]
    return {
        "yaml.schemas": {
            f"{where}/{PROJECT}": list(PROJECT_FILES),
            f"{where}/{DOCUMENTATION}": "documentation.yml",
            **({f"{where}/{MODULE}": yaml} if yaml else {}),
        },
        "json.schemas": [{"fileMatch": entities, "url": f"{where}/{ENTITIES}"}] if entities else [],
    }


def _globs(module: str, endings: tuple[str, ...]) -> Iterator[str]:
    plain = module.rstrip("/")
    if plain.endswith((".yml", ".yaml", ".json")):
        if plain.endswith(endings):
            yield plain
        return
    yield from (f"{plain}/*{ending}" for ending in endings)


MARKER = "project.yml"


def packaged(*path: str) -> Traversable:
    """Return a folder of the installed package."""
    return files("lakewright").joinpath(*path)


def write_project(source: Traversable, folder: Path) -> int:
    """Write a packaged project into a folder and return the number of files, 0 if it already exists.

    `project.yml` is written last and marks the project as complete: if it exists, nothing is written,
    even if files were changed or removed since. Files missing after an interrupted call are added.

    Raises:
        UsageError: The folder contains something else.
    """
    marker = folder / MARKER
    if marker.exists():
        if _project_name(marker.read_bytes()) == _project_name(source.joinpath(MARKER).read_bytes()):
            return 0
        raise _refusal(folder, f"has another project: {marker}")
    contents = dict(_contents(source))
    _check_free(folder, contents)
    order = sorted(contents, key=lambda path: path == MARKER)
    for path in order:
        LocalFiles().write(str(folder / path), contents[path])
    return len(order)


def _contents(source: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in source.iterdir():
        if entry.is_dir():
            yield from _contents(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_bytes()


def _check_free(folder: Path, contents: dict[str, bytes]) -> None:
    if folder.exists() and not folder.is_dir():
        raise _refusal(folder, "is not a folder")
    for path in folder.rglob("*"):
        # Files of an interrupted call are complete, because files are renamed into place.
        if path.is_file() and contents.get(path.relative_to(folder).as_posix()) != path.read_bytes():
            raise _refusal(folder, f"is not empty: {path.name}")


def _refusal(folder: Path, why: str) -> UsageError:
    return UsageError(
        f"{folder} {why}; nothing was written", remedy="Name a folder that is empty or does not exist."
    )


def _project_name(project: bytes) -> bytes:
    lines = (line for line in project.splitlines() if line.startswith(b"name:"))
    return next(lines, b"").strip()
