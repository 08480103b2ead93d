"""`lakewright schema`: write JSON schemas with which editors complete and check a project's files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Block, Span, line
from lakewright.cli.render.words import counted

if TYPE_CHECKING:
    from lakewright.usecases.declarations import EditorSchemas

__all__ = ["schema"]


@command(examples=["lakewright schema", "lakewright schema /tmp/schemas", "lakewright schema -o json"])
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def schema(call: Call, /, folder: Path | None) -> None:
    """Write JSON schemas of project.yml, modules, documentation.yml and entity files into DIR.

    DIR is by default the folder schemas of the project. The output says how an editor finds them.
    """
    from lakewright.usecases.declarations import write_schemas

    written = write_schemas(folder, project=call.settings.project)
    call.output.result(written.as_json(), _page(written))


def _page(written: EditorSchemas) -> Iterator[Block]:
    from lakewright.usecases.declarations import DOCUMENTATION, MODULE, PROJECT

    yield line(f"{counted(len(written.files), 'schema')} written to {written.folder}")
    yield line("")
    yield line(Span("In any editor with the YAML language server", "bold"), ": the first line of a file")
    absolute = written.folder.resolve()
    for told, name in (("project.yml", PROJECT), ("modules", MODULE), ("documentation.yml", DOCUMENTATION)):
        yield line(f"  # yaml-language-server: $schema={absolute / name}", Span(f"   ({told})", "dim"))
    yield line("")
    yield line(Span("In VS Code", "bold"), ": for all files at once, in .vscode/settings.json")
    for text in json.dumps(written.vscode, indent=2).splitlines():
        yield line(f"  {text}")
