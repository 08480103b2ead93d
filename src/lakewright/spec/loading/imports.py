"""Loads the projects that a project imports.

Source: the project files' rules, `imports`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from lakewright.errors import Fault, SpecError
from lakewright.spec.arguments import argument_text, expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.loading.references import of_import
from lakewright.spec.loading.settings import LoadOptions, unchecked
from lakewright.spec.models.job import Job
from lakewright.spec.models.project_file import ImportSpec
from lakewright.spec.models.storage import StorageSettings
from lakewright.spec.project import Project
from lakewright.spec.reading.parsed_file import ParsedFile
from lakewright.spec.reading.sections import Sections
from lakewright.spec.suggestions import suggestion

DEEPEST_IMPORT = 10

Load: TypeAlias = Callable[[Path, LoadOptions], Project]

_UNKNOWN = {"unknown_parameter", "unknown_suffix"}
"""Details of faults whose remedies hold for imports, too."""


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
                if spec.project in found:
                    raise SpecError.of("it is imported already", remedy="Remove one of the two.")
                found[spec.project] = self._imported(spec)
            except SpecError as error:
                sections.faults += (of_import(spec.project, each, location) for each in error.faults[:10])
        return found

    def _imported(self, spec: ImportSpec) -> Project:
        folder = (self.basedir / self.scope.render(spec.location or f"../{spec.project}")).resolve()
        importing = (*self.options.importing, self.basedir.resolve())
        if folder in importing or len(importing) > DEEPEST_IMPORT:
            raise SpecError.of("projects import each other in a cycle", remedy="Remove one of the imports.")
        arguments = {name: self.scope.render(text) for name, text in spec.arguments.items()}
        options = replace(
            self.options,
            definitions={} if spec.job else arguments,
            config={},
            overrides=None,
            check_manifest=unchecked,
            importing=importing,
            despite_faults=False,
        )
        project = self.load(folder, options)
        if project.name != spec.project:
            raise SpecError.of(
                f"the project in {folder} is named {project.name!r}", remedy=f"Import {project.name!r}."
            )
        if spec.job is None:
            _check_names(arguments, project)
            return project.within(project.scope.instance())
        job = project.job(self.scope.render(spec.job))
        return project.within(project.job_scope(job, _values(job, arguments, project)))


def _values(job: Job, arguments: Mapping[str, str], project: Project) -> Mapping[str, object]:
    """Return the values of a job's parameters.

    Raises:
        SpecError: An argument is missing, unknown or of another type, or has several values.
    """
    texts = [
        f"{name}={text}" if ":" in name else argument_text(name, text) for name, text in arguments.items()
    ]
    try:
        instances = expand_arguments(job.parameters, texts, project.scope)
    except SpecError as error:
        remedy = f"Give each parameter of job {job.name!r} one value, in `arguments` of the import."
        # Their remedies are those of a command line, unless a name is unknown.
        raise SpecError(
            Fault(
                f"job {job.name!r}: {fault.message}",
                remedy=fault.remedy if _UNKNOWN & fault.details.keys() else remedy,
            )
            for fault in error.faults
        ) from None
    if len(instances) != 1:
        raise SpecError.of(
            f"job {job.name!r}: the arguments are those of {len(instances)} instances",
            remedy="An import has one value of each parameter.",
        )
    return instances[0]


def _check_names(arguments: Mapping[str, str], project: Project) -> None:
    """Raise an error if arguments without a job are not in the environment that they override.

    Raises:
        SpecError: A name is unknown.
    """
    known = [name for name, _ in project.environment]
    for name in arguments:
        if name not in known:
            raise SpecError.of(
                f"its environment has no {name!r}",
                remedy=suggestion(name, known) or "Name the job that has it as a parameter: `job: …`.",
            )


def warn_of_storage(
    imports: dict[str, Project], storage: StorageSettings, document: ParsedFile
) -> Iterator[Fault]:
    """Yield a warning for each imported project whose stores would be reached in another way by itself."""
    for index, (name, project) in enumerate(imports.items()):
        if not project.storage.declared.items() <= storage.declared.items():
            yield Fault(
                f"import {name!r}: its `storage` is not used, but this project's",
                document.at(("imports", index)),
                remedy="Declare the same `storage` here, or keep what both read in one store.",
            )
