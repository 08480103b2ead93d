"""The settings in `documentation.yml`, with expressions evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.definitions.definition import render_tree
from lakewright.spec.definitions.faults import faults_of
from lakewright.spec.models.documentation import DocumentationFile, Generator
from lakewright.spec.reading.files import DOCUMENTATION_FILE

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["documentation_settings"]


def documentation_settings(workspace: Workspace) -> DocumentationFile:
    """Return the settings of the project's documentation; by default, one HTML page.

    Raises:
        SpecError: An expression is invalid, or a field is invalid once expressions are evaluated.
    """
    declared: Any = workspace.project.documentation or {}
    faults: list[Fault] = []
    rendered = render_tree(declared, workspace.scope.render, lambda error, _: faults.extend(error.faults))
    if faults:
        raise SpecError(faults)
    try:
        found = DocumentationFile.model_validate(rendered)
    except ValidationError as error:
        where = Location(DOCUMENTATION_FILE)
        raise SpecError(faults_of(error, "documentation", lambda _: where, is_rendered=True)) from None
    return found if found.generators else found.model_copy(update={"generators": (Generator(),)})
