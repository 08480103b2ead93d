"""The loader, which reads and checks a project's folder as a whole and reports all faults at once.

Source: the project files' rules, `1. Project files`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, cast

from pydantic import ValidationError

from lakewright.errors import Fault, Location, SpecError
from lakewright.errors.phrase import Option, Phrase
from lakewright.spec.definitions.definer import Definer
from lakewright.spec.definitions.definition import Definition, faults_of
from lakewright.spec.expressions.expression import names_used
from lakewright.spec.expressions.functions import EvaluationContext, Namespace
from lakewright.spec.expressions.scope import Entry, Scope
from lakewright.spec.loading.entity_checks import (
    check_entities,
    check_settings,
    merge_connections,
    reported_once,
)
from lakewright.spec.loading.imports import Importer, warn_of_storage
from lakewright.spec.loading.references import (
    check_executions,
    check_references,
    find_faulty,
    in_module,
    inherit,
    touching,
)
from lakewright.spec.loading.settings import (
    LoadOptions,
    active_profiles,
    merged_environment,
    namespace_warnings,
    read_apply,
    read_cluster,
    read_lake,
    read_manifest,
    read_own_config,
    read_storage,
    read_text,
    unused_values,
)
from lakewright.spec.loading.short_form import CONNECTION, entity_readers, is_short, long_entity, long_table
from lakewright.spec.models.base import Named
from lakewright.spec.models.documentation import DocumentationFile
from lakewright.spec.models.job import Job
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.project_file import ProjectFile
from lakewright.spec.project import Entities, Project
from lakewright.spec.reading.files import (
    DOCUMENTATION_FILE,
    NAMESPACE_FILES,
    NO_PROJECT,
    OVERRIDES_FILE,
    PROJECT_FILE,
    PROJECT_FILES,
    find_modules,
    project_file,
    read_document,
)
from lakewright.spec.reading.parsed_file import ParsedFile, texts_in
from lakewright.spec.reading.sections import ALL, CATEGORIES, Profile, RawDefinition, Sections

MOST_FAULTS = 200

ALL_TARGETS = "all"
"""The name of the job of a project that declares none."""

_PLAIN = ("relation", "mapping", "target", "connection", "test", "template", "trigger")
"""The categories whose definitions a project has as they are declared."""

NAMESPACE = "default"
"""The name of the only namespace, as Flowman names the one that it uses by default."""


def load_project(folder: Path, options: LoadOptions) -> Project:
    """Load and check the project in a folder, or of a project's file. The lake is not accessed.

    Raises:
        SpecError: The project is invalid. The error has all faults, with file and line.
    """
    return _Loader(folder.absolute(), options).project()


def _sorted_faults(faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults by file, in the order of the files' first faults, and by line within a file."""
    files: dict[str, int] = {}

    def place(fault: Fault) -> tuple[int, int]:
        where = fault.location or Location("")
        return files.setdefault(where.file, len(files)), where.line or 0

    return sorted(faults, key=place)


class _Loader:
    """One load. Each step adds its faults to those of the sections and continues.

    Attributes:
        partial: The models of what is valid of faulty definitions, whose references are checked.
        doubtful: The definitions that are made of the valid part of a faulty short form.
    """

    def __init__(self, place: Path, options: LoadOptions, context: EvaluationContext | None = None) -> None:
        self.file = project_file(place)
        self.basedir = self.file.parent
        self.options = options
        self.context = context or EvaluationContext(
            environ=options.environ, clock=options.clock, read_file=partial(read_text, options.on_read)
        )
        self.sections = Sections()
        self.definitions: dict[str, dict[str, Definition]] = {name: {} for name in CATEGORIES.values()}
        self.models: dict[str, dict[str, Named]] = {name: {} for name in CATEGORIES.values()}
        self.partial: dict[str, dict[str, Named]] = {name: {} for name in CATEGORIES.values()}
        self.doubtful: set[tuple[str, str]] = set()
        self.faulty_targets: dict[str, Definition] = {}
        self.documents: list[ParsedFile] = []

    def project(self) -> Project:
        top, document = self.read_project_file()
        self.read_modules(document)
        documentation = self.read_documentation()
        self.warn_of_namespace()
        is_imported = bool(self.options.importing)
        profiles = active_profiles(self.sections, self.options.profiles, is_imported=is_imported)
        environment = merged_environment(profiles)
        overrides = self.read_overrides()
        self.sections.warnings += unused_values(self.options.definitions, environment, self.documents)
        scope = self.scope(top, environment, overrides.environment)
        config = read_own_config((*profiles, overrides), self.options.config, scope, self.sections)
        lake = read_lake(profiles, scope, self.sections, self.basedir)
        scope = self.scope(top, environment, overrides.environment, lake)
        storage = read_storage(profiles, scope, self.sections)
        cluster = read_cluster(profiles, scope, self.sections, config)
        apply = read_apply(profiles, scope, self.sections)
        is_remote = lake is not None and lake.is_remote and not storage.single_driver
        check = self.options.check_manifest
        manifest = read_manifest(profiles, scope, self.sections, check, needs_sharing=is_remote)
        self.define(profiles, scope, LakeSettings() if lake is None else lake)
        jobs, imports = inherit("job", self.models["job"]), self.imports(top, scope, document)
        self.sections.warnings += warn_of_storage(imports, storage, document)
        expected = dict.fromkeys(each.project for each in (top.imports if top else ()))
        self.check(scope, lake, expected | imports)
        check_executions(self.definitions["job"], self.models["job"], jobs, self.sections.warnings)
        faulty = self.without_faulty()
        if faulty is None or top is None or lake is None:
            # What nothing uses may be used in a file that can't be read.
            raise SpecError(self.sorted_faults(), self.sections.warnings if self.is_read else ())
        jobs = {name: job for name, job in jobs.items() if ("job", name) not in faulty}
        plain: Any = {f"{name}s": self.definitions[name] for name in _PLAIN}
        return Project(
            name=top.name,
            version=top.version,
            description=top.description,
            basedir=self.basedir,
            registry=self.options.kinds,
            scope=scope,
            entity_definitions=self.definitions["entity"],
            entities=Entities(self.definitions["entity"], scope),
            jobs=cast("dict[str, Job]", jobs),
            environment=tuple((key, setting.text) for key, setting in environment.items()),
            config=config,
            lake=lake,
            storage=storage,
            cluster=cluster,
            apply=apply,
            manifest=manifest,
            documentation=documentation,
            imports=imports,
            warnings=tuple(self.sections.warnings),
            faults=tuple(self.sorted_faults()),
            faulty=faulty,
            faulty_targets=self.faulty_targets,
            **plain,
        )

    def without_faulty(self) -> Mapping[tuple[str, str], Fault] | None:
        """Remove the definitions that faults touch and return them; None if the project can't be used."""
        faults = self.sections.faults
        if not faults or not self.options.despite_faults:
            return None if faults else {}
        if not all(fault.touches for fault in faults) and not (self.options.checks_only and self.is_read):
            return None
        faulty = find_faulty(self.sections.definitions, self.definitions, self.models, faults)
        for category, name in faulty:
            found = self.definitions.get(category, {}).pop(name, None)
            if category == "target" and found is not None:
                self.faulty_targets[name] = found
        return faulty

    @property
    def is_read(self) -> bool:
        """Whether all files of the project could be read."""
        return all(document.value is not None for document in self.documents)

    def sorted_faults(self) -> list[Fault]:
        return _sorted_faults(reported_once(self.sections.faults))[:MOST_FAULTS]

    def read(self, path: Path, *, is_module: bool = False) -> ParsedFile:
        self.options.on_read(path)
        # The files of an imported project are named from the folder of the outermost one.
        document, faults = read_document(path, (*self.options.importing, self.basedir)[0])
        self.documents.append(document)
        if is_module:
            faults = tuple(in_module(path, document, fault) for fault in faults)
        self.sections.faults += faults
        return document

    def read_project_file(self) -> tuple[ProjectFile | None, ParsedFile]:
        path = self.file
        for name in PROJECT_FILES:
            self.options.on_read(self.basedir / name)
        if not path.is_file():
            why = f"there is no {PROJECT_FILE} in {self.basedir}"
            raise SpecError.of(why, location=Location(PROJECT_FILE), remedy=NO_PROJECT)
        if ignored := [name for name in PROJECT_FILES if (self.basedir / name).is_file()][1:]:
            why = f"{', '.join(ignored)} is ignored: {path.name} is the project's file"
            self.sections.warn(why, Location(ignored[0]), "Remove one of them.")
        document = self.read(path)
        is_unreadable = document.value is None and bool(self.sections.faults)
        value = document.value if isinstance(document.value, dict) else {}
        sections = {key: value[key] for key in ALL if key in value}
        self.sections.add_sections(document, sections)
        try:
            top = ProjectFile.model_validate({key: value[key] for key in value if key not in sections})
        except ValidationError as error:
            if not is_unreadable:
                self.sections.faults += faults_of(error, "project", document.at, is_rendered=True)
            return None, document
        return top, document

    def read_modules(self, document: ParsedFile) -> None:
        # Modules are read even if keys of the project file are invalid, to report the faults of both.
        value = document.value.get("modules") if isinstance(document.value, dict) else ()
        listed = value if isinstance(value, list) else [value]
        modules = [module for module in listed if isinstance(module, str)]
        for module in modules:
            self.options.on_read(self.basedir / module)
        files, faults = find_modules(self.basedir, modules, document)
        self.sections.faults += faults
        for path in files:
            if path != self.file:
                self.sections.add(self.read(path, is_module=True))

    def read_documentation(self) -> Mapping[str, Any] | None:
        path = self.basedir / DOCUMENTATION_FILE
        self.options.on_read(path)
        if not path.is_file():
            return None
        document = self.read(path)
        value = document.value if isinstance(document.value, dict) else {}
        try:
            DocumentationFile.model_validate(value)
        except ValidationError as error:
            self.sections.faults += faults_of(error, "documentation", document.at, is_rendered=False)
        return value

    def warn_of_namespace(self) -> None:
        given = self.options.environ.get("FLOWMAN_CONF_DIR")
        folders = [self.basedir, *([Path(given)] if given else [])]
        for file in (folder / name for folder in folders for name in NAMESPACE_FILES):
            self.options.on_read(file)
            if file.is_file():
                self.sections.warnings += namespace_warnings(read_document(file, self.basedir)[0])

    def read_overrides(self) -> Profile:
        folder = self.options.overrides
        for place in (folder, self.basedir):
            if place is not None:
                self.options.on_read(place / OVERRIDES_FILE)
        if folder is not None and (folder / OVERRIDES_FILE).is_file():
            return self.sections.overrides(self.read(folder / OVERRIDES_FILE))
        if (self.basedir / OVERRIDES_FILE).is_file():
            why = f"{OVERRIDES_FILE} is not read: only the one of the folder where a command is run counts"
            remedy = Phrase(
                "Run the command in the project's folder, or use ",
                Option("-D", "Project.load(…, definitions={…})"),
                " and ",
                Option("--conf", "config={…}"),
                ".",
            )
            self.sections.warn(why, Location(OVERRIDES_FILE), remedy)
        return Profile()

    def scope(
        self,
        top: ProjectFile | None,
        environment: Mapping[str, Entry],
        overrides: Mapping[str, Entry],
        lake: LakeSettings | None = None,
    ) -> Scope:
        properties = {
            "basedir": PurePosixPath(self.basedir.as_posix()),
            "filename": PurePosixPath(self.file.as_posix()),
            "name": top.name if top else "",
            "version": (top.version if top else None) or "",
            **({} if lake is None else {"lake": lake.root_folder.rstrip("/")}),
        }
        return Scope(
            {
                "project": Namespace("project", properties=properties),
                "namespace": Namespace("namespace", properties={"name": NAMESPACE}),
                **environment,
            },
            definitions={
                **overrides,
                **{key: Entry(text) for key, text in self.options.definitions.items()},
            },
            context=self.context,
        )

    def expand(self, prefix: str) -> None:
        """Replace what is written in the short form by what it stands for; what is declared itself stays."""
        sections, registry = self.sections, self.options.kinds
        given = {category: set(entries) for category, entries in sections.definitions.items()}
        short = [each for each in sections.entities if is_short(each)]
        sections.entities = [each for each in sections.entities if not is_short(each)]
        forms = [("entity", each, long_entity(each, prefix, registry)) for each in short]
        forms += [("table", each, long_table(each, registry)) for each in sections.tables]
        names = {each.name for each in sections.entities}
        for category, declared, form in forms:
            made_of_it = [(kind, made.name) for kind, made in form.definitions]
            sections.faults += touching(form.faults, *(made_of_it or [(category, declared.name)]))
            self.doubtful.update(made_of_it if form.faults else ())
            if declared.name in names:
                what = f"{category} {declared.name!r}"
                sections.fault(f"{what} has the name of another entity or table", declared.at(), "Rename it.")
            names.add(declared.name)
            for kind, made in form.definitions:
                if kind == "entity":
                    sections.entities.append(made)
                elif made.name not in given[kind]:
                    sections.definitions[kind].setdefault(made.name, made)
        if any("connection" not in each.raw for each in short):
            connections = sections.definitions["connection"]
            connections.setdefault(CONNECTION, RawDefinition(CONNECTION, {}, short[0].document, ()))

    def add_readers(self) -> None:
        """Add the mappings by which queries read entities, where nothing else has an entity's name."""
        mappings, relations = self.sections.definitions["mapping"], self.sections.definitions["relation"]
        for name, entity in self.sections.definitions["entity"].items():
            relation = relations.get(name)
            if relation is None or relation.raw.get("entity") == name:
                for made in entity_readers(entity):
                    mappings.setdefault(made.name, made)

    def add_job(self, scope: Scope) -> None:
        """Add the job of all targets without parameters if the project declares no job."""
        if self.sections.definitions["job"] or not self.sections.definitions["target"]:
            return
        known, sections = scope.names | {"slice"}, self.sections.definitions

        def is_known(target: RawDefinition) -> bool:
            parts = ((kind, target.raw.get(kind)) for kind in ("mapping", "relation"))
            read = (sections[kind].get(name) for kind, name in parts if isinstance(name, str))
            texts = (text for each in (target, *read) if each is not None for text in texts_in(each.raw))
            return all(names_used(text) <= known for text in texts)

        targets = [name for name, declared in sections["target"].items() if is_known(declared)]
        raw = {"targets": targets}
        if targets:
            self.sections.definitions["job"][ALL_TARGETS] = RawDefinition(
                ALL_TARGETS, raw, self.documents[0], ()
            )

    def define(self, profiles: Sequence[Profile], scope: Scope, lake: LakeSettings) -> None:
        self.expand(lake.systemfield_prefix)
        self.sections.key_entities()
        self.add_readers()
        self.add_job(scope)
        declared = {category: dict(entries) for category, entries in self.sections.definitions.items()}
        for profile in profiles[1:]:
            declared["connection"] |= profile.connections
        declared["entity"] = merge_connections(declared["entity"], declared["connection"])
        definer = Definer(self.options.kinds, declared.pop("template"))
        self.definitions["template"] = dict(definer.templates)
        for category, entries in declared.items():
            for entry in entries.values():
                definition, faults = definer.define(category, entry, entries)
                self.sections.faults += touching(faults, (category, entry.name))
                if definition is not None:
                    self.keep(definition)
        self.sections.faults += definer.template_faults()

    def keep(self, definition: Definition) -> None:
        self.definitions[definition.category][definition.name] = definition
        if "name" in definition.raw and definition.category not in ("connection", "entity"):
            remedy = "Remove it: the key in the section is the name."
            self.sections.faults.append(definition.fault("unknown key 'name'", "name", remedy=remedy))
        model, faults = definition.check()
        # What was made of the valid part of a faulty short form may lack what makes it whole.
        if definition.key not in self.doubtful:
            self.sections.faults += touching(faults, definition.key)
        if model is not None:
            self.models[definition.category][definition.name] = model
        elif faults and (part := definition.check_rest()) is not None:
            self.partial[definition.category][definition.name] = part
        elif definition.category == "job" and not faults:
            why = "an expression stands where a number or a fixed word is expected"
            self.sections.faults.append(definition.fault(why))

    def check(self, scope: Scope, lake: Any, imports: Mapping[str, Project | None]) -> None:
        models = {category: {**self.partial[category], **self.models[category]} for category in self.models}
        check_entities(self.definitions["entity"], self.models["entity"], lake, scope, self.sections.faults)
        check_settings(
            self.definitions["entity"], self.definitions["connection"], lake, self.sections.warnings
        )
        check_references(self.definitions, models, self.sections.definitions, imports, self.sections.faults)

    def imports(self, top: ProjectFile | None, scope: Scope, document: ParsedFile) -> dict[str, Project]:
        def load(folder: Path, options: LoadOptions) -> Project:
            return _Loader(folder, options, self.context).project()

        importer = Importer(load, self.options, scope, self.basedir)
        return importer.projects(top.imports if top else (), document, self.sections)
