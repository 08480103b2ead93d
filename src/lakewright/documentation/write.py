"""Writing the documentation files of a generator, each replaced atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lakewright.documentation.document import Document
from lakewright.documentation.pages.html import html_files
from lakewright.documentation.pages.markdown import markdown_files
from lakewright.errors import SpecError
from lakewright.lake.files import LocalFiles
from lakewright.lake.paths import local_path
from lakewright.spec.models.documentation import DocumentationFormat, Generator
from lakewright.workspace.workspace import Workspace

__all__ = ["folder_of", "json_files", "write_documentation"]


def folder_of(generator: Generator, workspace: Workspace) -> Path:
    """Return the folder of a generator.

    Raises:
        SpecError: The folder is not on a local file system.
    """
    local = local_path(workspace.resolve_location(generator.location))
    if local is None:
        raise SpecError.of(
            f"documentation cannot be written to {generator.location}",
            remedy="Name a local folder, and copy the files from there.",
        )
    return local


def write_documentation(document: Document, generator: Generator, workspace: Workspace) -> Path:
    """Write the files of a generator, and return the one to open; other files in the folder are kept."""
    folder = folder_of(generator, workspace)
    shown = document.only(lambda ref: generator.shows(ref.category, ref.name, document.project))
    files = _files(shown, generator.template)
    for name, text in files.items():
        LocalFiles().write(str(folder / name), text.encode(errors="backslashreplace"))
    return folder / next(iter(files))


def _files(document: Document, template: DocumentationFormat) -> Mapping[str, str]:
    if template is DocumentationFormat.JSON:
        return json_files(document)
    if template is DocumentationFormat.MARKDOWN:
        return markdown_files(document)
    return html_files(document, is_inline=template is DocumentationFormat.HTML)


def json_files(document: Document) -> Mapping[str, str]:
    """Return the file's text by its name."""
    return {"documentation.json": json.dumps(document.as_json(), indent=2, ensure_ascii=False) + "\n"}
