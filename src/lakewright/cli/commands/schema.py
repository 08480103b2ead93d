"""`lakewright schema`: JSON schemas by which editors complete and check a project's files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Block, Span, line
from lakewright.cli.render.words import counted
from lakewright.errors import UsageError

if TYPE_CHECKING:
    from lakewright.spec.definitions.registry import Registry

__all__ = ["schema"]

FOLDER = "schemas"
PROJECT, MODULE, DOCUMENTATION, ENTITIES = (
    f"{name}.schema.json" for name in ("project", "module", "documentation", "entities")
)


@command(examples=["lakewright schema", "lakewright schema /tmp/schemas", "lakewright schema -o json"])
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def schema(call: Call, /, folder: Path | None) -> None:
    """Write JSON schemas of project.yml, modules, documentation.yml and entity files into DIR.

    DIR is the folder schemas of the project, unless given. What is printed tells an editor to use them.
    """
    from lakewright.app import find_project, registry

    project = call.settings.project or _found(find_project)
    folder = folder or (project or Path.cwd()) / FOLDER
    schemas = _schemas(registry())
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in schemas.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    modules = _modules(project) if project else ["model"]
    settings = _settings(folder, project, modules)
    document = {"folder": str(folder.resolve()), "files": list(schemas), "vscode": settings}
    call.output.result(document, _page(folder, len(schemas), settings))


def _found(find_project: Any) -> Path | None:
    try:
        found: Path = find_project(Path.cwd())
    except UsageError:
        return None
    return found


def _schemas(kinds: Registry) -> Mapping[str, Mapping[str, Any]]:
    from lakewright.spec.json_schema import (
        documentation_schema,
        entities_schema,
        module_schema,
        project_schema,
    )

    return {
        PROJECT: project_schema(),
        MODULE: module_schema(kinds),
        DOCUMENTATION: documentation_schema(),
        ENTITIES: entities_schema(kinds),
    }


def _modules(project: Path) -> list[str]:
    from lakewright.spec.reading.files import PROJECT_FILE, read_document

    value = read_document(project / PROJECT_FILE, project)[0].value
    modules = value.get("modules") if isinstance(value, dict) else None
    listed = modules if isinstance(modules, list) else [modules]
    return [module for module in listed if isinstance(module, str)] or ["model"]


def _settings(folder: Path, project: Path | None, modules: list[str]) -> dict[str, Any]:
    """Return what VS Code needs among its settings, with its YAML extension."""
    base = (project or Path.cwd()).resolve()
    absolute = folder.resolve()
    where = (
        f"./{absolute.relative_to(base).as_posix()}" if absolute.is_relative_to(base) else absolute.as_uri()
    )
    yaml = [path for module in modules for path in _globs(module, (".yml", ".yaml"))]
    entities = [path for module in modules for path in _globs(module, (".json",))]
    return {
        "yaml.schemas": {
            f"{where}/{PROJECT}": "project.yml",
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


def _page(folder: Path, count: int, settings: Mapping[str, Any]) -> Iterator[Block]:
    yield line(f"{counted(count, 'schema')} written into {folder}")
    yield line("")
    yield line(Span("In any editor with the YAML language server", "bold"), ": the first line of a file")
    absolute = folder.resolve()
    for told, name in (("project.yml", PROJECT), ("modules", MODULE), ("documentation.yml", DOCUMENTATION)):
        yield line(f"  # yaml-language-server: $schema={absolute / name}", Span(f"   ({told})", "dim"))
    yield line("")
    yield line(Span("In VS Code", "bold"), ": for all files at once, in .vscode/settings.json")
    for text in json.dumps(settings, indent=2).splitlines():
        yield line(f"  {text}")
