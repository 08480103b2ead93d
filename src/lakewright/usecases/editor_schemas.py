"""Write JSON schemas with which editors complete and check the project's files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakewright.errors import UsageError
from lakewright.run.kinds import registry
from lakewright.spec.json_schema import documentation_schema, entities_schema, module_schema, project_schema
from lakewright.spec.reading.files import PROJECT_FILES, find_project, project_file, read_document

__all__ = ["DOCUMENTATION", "ENTITIES", "MODULE", "PROJECT", "EditorSchemas", "write_schemas"]

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
        PROJECT: project_schema(),
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
