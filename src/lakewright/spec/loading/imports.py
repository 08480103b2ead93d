"""Loads the projects that a project imports.

Source: the project files' rules, `imports`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from lakewright.errors import Fault, SpecError
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.loading.faulty import of_import
from lakewright.spec.loading.load_options import LoadOptions
from lakewright.spec.loading.settings import unchecked
from lakewright.spec.models.project_file import ImportSpec
from lakewright.spec.models.storage import StorageSettings
from lakewright.spec.project import Project
from lakewright.spec.reading.parsed_file import ParsedFile
from lakewright.spec.reading.sections import Sections

__all__ = ["Importer", "Load", "warn_of_storage"]

DEEPEST_IMPORT = 10

Load: TypeAlias = Callable[[Path, LoadOptions], Project]


@dataclass(frozen=True, slots=True)
class Importer:
    """Loads the projects that one project imports.

    Attributes:
        load: Loads a project from its folder.
        options: The options of the importing project's load.
        scope: Names of the importing project, for the texts of its imports.
        basedir: Folder of the importing project.
    """

    load: Load
    options: LoadOptions
    scope: Scope
    basedir: Path

    def projects(
        self, specs: Sequence[ImportSpec], document: ParsedFile, sections: Sections
    ) -> dict[str, Project]:
        """Return the imported projects by their names in the imports.

        Args:
            specs: The imports, as `document` declares them.
            document: The project's file.
            sections: Receives the faults of the imported projects.
        """
        found: dict[str, Project] = {}
        for index, spec in enumerate(specs):
            location = document.at(("imports", index))
            try:
                found[spec.project] = self._imported(spec)
            except SpecError as error:
                sections.faults += (of_import(spec.project, each, location) for each in error.faults[:10])
        return found

    def _imported(self, spec: ImportSpec) -> Project:
        folder = (self.basedir / self.scope.render(spec.location or f"../{spec.project}")).resolve()
        importing = (*self.options.importing, self.basedir.resolve())
        if folder in importing or len(importing) > DEEPEST_IMPORT:
            raise SpecError.of("projects import each other in a cycle", remedy="Remove one of the imports.")
        options = replace(
            self.options,
            definitions={},
            config={},
            overrides=None,
            check_manifest=unchecked,
            importing=importing,
            despite_faults=False,
        )
        project = self.load(folder, options)
        job = project.job(self.scope.render(spec.job)) if spec.job else None
        arguments = {name: self.scope.render(text) for name, text in spec.arguments.items()}
        return project.within(
            project.job_scope(job, arguments) if job else project.scope.instance({}, arguments)
        )


def warn_of_storage(
    imports: dict[str, Project], storage: StorageSettings, document: ParsedFile
) -> Iterator[Fault]:
    """Yield a warning for each imported project whose stores would be reached in another way by itself."""
    for index, (name, project) in enumerate(imports.items()):
        if project.storage.s3 is not None and project.storage.s3 != storage.s3:
            yield Fault(
                f"import {name!r}: its `storage` is not used, but this project's",
                document.at(("imports", index)),
                remedy="Declare the same `storage` here, or keep what both read in one store.",
            )
