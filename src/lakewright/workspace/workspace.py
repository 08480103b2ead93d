"""The workspace of a job's instance: its resolved definitions, and the frames of its mappings."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lakewright.errors import SpecError
from lakewright.lake.commit import sign_commits
from lakewright.lake.paths import local_path
from lakewright.lake.table import refresh_tables, unpersist
from lakewright.plan.resource import Resource
from lakewright.schema.sql import name_sql
from lakewright.spark.engine import measured
from lakewright.spec.models.base import Named
from lakewright.spec.models.fields import Field
from lakewright.workspace.readable_parts import ImportedRelation, ReadableMapping, ReadableRelation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.definitions.definition import Definition
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.lake import LakeSettings
    from lakewright.spec.project import Project


T = TypeVar("T")

_SUBSTITUTION = "spark.sql.variable.substitute"
"""Spark's key for whether it replaces texts like `${…}` in SQL."""


OF_NO_MAPPING = ""
"""Stands for a relation that is read by no mapping."""

_VIEWS = frozenset(("view", "hiveView", "jdbcView"))
"""Kinds of relations that are computed from other resources whenever they are read."""


class Notes(dict[str, list[Callable[[], str | None]]]):
    """What mappings and relations report of the rows that are read, until a run takes it.

    Functions by mapping; each returns None as long as there is nothing to report.

    Example:
        >>> notes = Notes()
        >>> notes.add("orders", lambda: "1 record is left out")
        >>> notes.take(["orders"]), notes.take(["orders"])
        (['1 record is left out'], [])
    """

    def add(self, mapping: str, note: Callable[[], str | None]) -> None:
        """Add a function whose text is reported for a mapping."""
        self.setdefault(mapping, []).append(note)

    def take(self, mappings: Iterable[str] | None = None) -> list[str]:
        """Return what some of the mappings report, or all of them, once."""
        found: dict[str, None] = {}
        for name in sorted(self if mappings is None else self.keys() & set(mappings)):
            texts = [(each, each()) for each in self.pop(name)]
            if waiting := [each for each, text in texts if text is None]:
                self[name] = waiting
            found |= dict.fromkeys(text for _, text in texts if text is not None)
        return list(found)


class Workspace:
    """The definitions of one instance of a job, each resolved once, and one frame for each mapping.

    Several threads may use it. They wait for each other while frames are built, which computes nothing, but
    not while rows are written.
    """

    def __init__(
        self,
        project: Project,
        scope: Scope,
        lake: Lake,
        *,
        importer: Workspace | None = None,
        layout: LakeSettings | None = None,
        is_outline: bool = False,
        inner: Mapping[str, Named] | None = None,
    ) -> None:
        """Create the workspace of one instance.

        Args:
            project: The loaded project.
            scope: The names and values of the instance.
            lake: The lake, which all instances share.
            importer: The workspace whose project imports this one; the two share a session.
            layout: The lake of an imported project, which has its entities' tables; default: this one.
            is_outline: Whether mappings of relations have their columns but no rows.
            inner: Mappings of a unit, which `importer`'s project doesn't have; it provides all other names.
        """
        self.project = project
        self.scope = scope
        self.lake = lake
        self.is_imported: bool = layout is not None or (importer is not None and importer.is_imported)
        self.layout: LakeSettings = layout or (lake.settings if importer is None else importer.layout)
        self.is_outline = is_outline
        self._frames: dict[str, DataFrame] = {}
        self._spark: SparkSession | None = None
        self._importer = importer
        self._imported: dict[str, Workspace] = {}
        self._lock: threading.RLock = importer._lock if importer else threading.RLock()
        self._resolved: dict[int, Named] = {}
        self._inner = inner or {}
        self.observations: dict[str, Observation] = {} if importer is None else importer.observations
        sharing = importer if inner is None else None  # mappings of a unit may have the names of others
        self.notes: Notes = Notes() if sharing is None else sharing.notes
        self._path: list[str] = []
        self._views: list[tuple[frozenset[Resource], frozenset[Resource]]] | None = None

    @property
    def spark(self) -> SparkSession:
        """The session of this instance's frames; no other instance sees its temporary views."""
        if self._importer is not None:
            return self._importer.spark
        with self._lock:
            if self._spark is None:
                self._spark = self.lake.new_session()
                if _SUBSTITUTION not in self.lake.session.conf:
                    # Expressions are evaluated already; what looks like a variable to Spark now is text.
                    self._spark.conf.set(_SUBSTITUTION, "false")
                sign_commits(self._spark)
            return self._spark

    def relation(self, name: str) -> ReadableRelation:
        """Return a relation; `project/name` names one of an imported project, which can only be read.

        Raises:
            SpecError: No relation has that name, or its declaration is invalid for this instance.
        """
        home, inner = self._home(name)
        if home is not self:
            return ImportedRelation(home.relation(inner), home)
        return cast("ReadableRelation", self._resolve("relation", name))

    def mapping(self, name: str) -> ReadableMapping:
        """Return a mapping; `name:output` is the mapping `name`.

        Raises:
            SpecError: No mapping has that name or no such output, or its declaration is invalid for this
                instance.
        """
        base, _, output = name.partition(":")
        found = self._inner.get(base) or self._resolve("mapping", base)
        mapping = cast("ReadableMapping", found)
        mapping.check_output(output)
        return mapping

    def connection(self, name: str) -> Named:
        """Return a connection.

        Raises:
            SpecError: No connection has that name, or its declaration is invalid for this instance.
        """
        return self._resolve("connection", name)

    def target(self, name: str) -> Named:
        """Return a target; `Target.named` gives it its type.

        Raises:
            SpecError: No target has that name, or its declaration is invalid for this instance.
        """
        return self._resolve("target", name)

    def original_relation(self, name: str) -> ReadableRelation:
        """Return the project's own relation, even if a test overrides it."""
        return cast("ReadableRelation", self._resolve("relation", name, is_original=True))

    def original_mapping(self, name: str) -> ReadableMapping:
        """Return the project's own mapping, even if a test overrides it."""
        return cast("ReadableMapping", self._resolve("mapping", name, is_original=True))

    def outline(self) -> Workspace:
        """Return a workspace whose frames have columns but no rows, so that no data need exist."""
        return Workspace(self.project, self.scope, self.lake, importer=self, is_outline=True)

    def unit(self, inner: Mapping[str, Named]) -> Workspace:
        """Return a workspace that has these mappings too; all others are those of this one."""
        return Workspace(
            self.project, self.scope, self.lake, importer=self, is_outline=self.is_outline, inner=inner
        )

    def entity(self, name: str) -> Entity:
        """Return an entity.

        Raises:
            SpecError: No entity has that name.
        """
        with self._lock:
            return self.project.entity(name)

    def _resolve(self, category: str, name: str, *, is_original: bool = False) -> Named:
        """Return the definition of a name in a category, which is resolved once.

        Args:
            category: The category, such as `relation`.
            name: The name.
            is_original: Whether it is the project's own, even if a test of the project overrides it.

        Raises:
            SpecError: No definition has that name, or its declaration is invalid for this instance.
        """
        definitions = self.project.definitions(category)
        if is_original:
            definitions = {**definitions, **self.project.overridden.get(category, {})}
        definition: Definition = self.project.named(category, name, definitions)
        with self._lock:
            if id(definition) not in self._resolved:
                self._resolved[id(definition)] = definition.resolve(self.scope)
            return self._resolved[id(definition)]

    def _home(self, name: str) -> tuple[Workspace, str]:
        """Return the workspace that contains a definition, and the definition's name there."""
        if self._inner and self._importer and name.partition(":")[0] not in self._inner:
            return self._importer._home(name)
        project, _, inner = name.partition("/")
        imported = self.project.imports.get(project) if inner else None
        if imported is None:
            return self, name
        with self._lock:
            if project not in self._imported:
                self._imported[project] = Workspace(
                    imported,
                    imported.scope,
                    self.lake,
                    importer=self,
                    layout=imported.lake,
                    is_outline=self.is_outline,
                )
            return self._imported[project], inner

    def frame(self, mapping: str) -> DataFrame:
        """Return a mapping's frame, which is built once, and again after something that it reads is written.

        Raises:
            SpecError: Mappings read each other in a cycle, or no mapping has that name.
        """
        home, inner = self._home(mapping)
        if home is not self:
            return home.frame(inner)
        with self._lock:
            if mapping not in self._frames:
                output = mapping.partition(":")[2]
                self._frames[mapping] = self._use(
                    mapping, lambda found: found.output(self, output) if output else found.build(self)
                )
            return self._frames[mapping]

    @contextmanager
    def views(self, mappings: Iterable[str]) -> Iterator[SparkSession]:
        """Yield the session, in which each mapping's frame is a temporary view of the mapping's name."""
        with self._lock:
            for name in mappings:
                self.frame(name).createOrReplaceTempView(name_sql(name))
            yield self.spark

    def required(self, mapping: str) -> frozenset[Resource]:
        """Return every resource that a mapping's frame depends on, through all its inputs and views."""
        home, inner = self._home(mapping)
        with self._lock:
            found = home._use(inner, lambda found: found.requires(home))
            # Only for the outermost mapping: a view may be the query of one that is in use.
            return found if home._path else home.through_views(found)

    def through_views(self, resources: frozenset[Resource]) -> frozenset[Resource]:
        """Return the resources, and those that the project's views among them are computed from."""
        with self._lock:
            found, count = resources, 0
            while count < len(found):
                count = len(found)
                for own, inputs in self._resources_of_views():
                    if any(view.intersects(each) for view in own for each in found):
                        found |= inputs
            return found

    def _resources_of_views(self) -> list[tuple[frozenset[Resource], frozenset[Resource]]]:
        """Return the resources of each view, and those that it is computed from; they are found once."""
        if self._views is None:
            self._views = []
            for name, definition in self.project.relations.items():
                if definition.kind in _VIEWS:
                    with suppress(SpecError):  # it is reported where the view itself is used
                        view = self.relation(name)
                        self._views.append((view.resources(self), view.computed_from(self)))
        return self._views

    def sql_text(self, mapping: str) -> str:
        """Return a query over tables that gives a mapping's rows.

        Raises:
            SpecError: Its kind, or something that it reads, can't be written as a query.
        """
        home, inner = self._home(mapping)
        with self._lock:
            return home._use(inner, lambda found: found.sql_text(home))

    def fields(self, mapping: str) -> tuple[Field, ...]:
        """Return the columns of a mapping's frame."""
        from lakewright.lake.columns import fields_of

        return fields_of(self.frame(mapping).schema)

    def declarations(self, mapping: str) -> dict[str, str]:
        """Return what is declared of a mapping and of all mappings that it reads, by their names in words.

        The texts are as the files have them, so that they are the same for all parameters. Spaces do not
        count.
        """
        home, inner = self._home(mapping)
        with self._lock:
            parts = home._use(inner, home._declarations)
        if inner == mapping:
            return parts
        project = mapping.removesuffix(f"/{inner}")
        return {f"{part} of project {project}": text for part, text in parts.items()}

    def _declarations(self, mapping: ReadableMapping) -> dict[str, str]:
        name = self._path[-1]
        definition = self.project.mappings.get(name)
        inner = getattr(mapping, "mappings", {})  # those of a unit
        files = [getattr(each, "file", None) for each in (mapping, *inner.values())]
        written = (
            mapping.model_dump_json()
            if definition is None
            else json.dumps([definition.kind, definition.raw, [each.text for each in definition.bindings]])
        )
        text = " ".join([written, *(self.read_file(file) for file in files if file)]).replace("\\n", " ")
        found = {f"mapping {name!r}": " ".join(text.split())}
        for each in mapping.inputs(self):
            found |= self.declarations(each)
        return found

    def take_measures(self, mapping: str) -> dict[str, dict[str, Any]]:
        """Return what the observations of a mapping and its inputs have measured, by mapping, each once.

        A measurement of rows that haven't been computed is left for whoever computes them.
        """
        with self._lock:
            return {
                name: values
                for name in sorted(self._read_through(mapping) & self.observations.keys())
                if (values := measured(self.observations[name])) is not None
                and self.observations.pop(name, None) is not None
            }

    def note(self, text: str) -> None:
        """Have the run report a text, with the mapping whose frame is being made, if one is."""
        home = self
        while not home._path and home._importer is not None:
            home = home._importer
        mapping = home._path[-1].partition(":")[0] if home._path else OF_NO_MAPPING
        home.notes.add(mapping, lambda: text)

    def take_notes(self, mapping: str) -> list[str]:
        """Return what a mapping and its inputs report of the rows that they read, once."""
        with self._lock:
            return self.notes.take(self._read_through(mapping))

    def _read_through(self, mapping: str) -> frozenset[str]:
        home, inner = self._home(mapping)
        name = inner.partition(":")[0]
        inputs = home._use(name, lambda found: found.inputs(home))
        return frozenset({name}).union(*(home._read_through(each) for each in inputs))

    def invalidate(self, resources: frozenset[Resource]) -> None:
        """Discard the frames that depend on resources just written, and what the session knows of them.

        Both may have cached the former state, such as the files of a table.
        """
        with self._lock:
            if self._spark is not None:
                refresh_tables(self._spark, (each.name for each in resources if each.category == "table"))
            stale = [
                name
                for name in self._frames
                if any(ours.intersects(theirs) for ours in self.required(name) for theirs in resources)
            ]
            for name in stale:
                unpersist(self._frames.pop(name))
            for imported in self._imported.values():
                imported.invalidate(resources)

    def close(self) -> None:
        """Discard the frames and what Spark caches for them, after the instance has ended."""
        with self._lock:
            while self._frames:
                unpersist(self._frames.popitem()[1])
            while self._imported:
                self._imported.popitem()[1].close()
            self._spark = None

    def project_path(self, path: str) -> Path:
        """Return the path of a file of the project; a relative path is below the project's folder."""
        return self.project.basedir / path

    def resolve_location(self, location: str) -> str:
        """Return the place of a declared location: an absolute local path, or a URI.

        During a test of the project, the places that it writes to are redirected.
        """
        local = local_path(location)
        return self.lake.redirect(
            location.rstrip("/") if local is None else str(self.project_path(str(local)))
        )

    def removable(self, place: str, label: str) -> str:
        """Return a place that may be removed or replaced as a whole.

        Args:
            place: The place.
            label: What is declared to do that.

        Raises:
            SpecError: The project's folder lies in it.
        """
        local = local_path(place)
        if local is not None and self.project_path(".").resolve().is_relative_to(local.resolve()):
            raise SpecError.of(
                f"{place} contains the project itself, which would be removed",
                remedy="Use a folder of its own.",
                subject=label,
            )
        return place

    def read_file(self, path: str) -> str:
        """Return the text of a UTF-8 file of the project.

        Raises:
            SpecError: The file doesn't exist, or it can't be read.
        """
        try:
            return self.project_path(path).read_text("utf-8")
        except FileNotFoundError as error:
            raise SpecError.of(
                f"there is no file {path}", remedy="Create it, or correct the path."
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError.of(f"{path} can't be read: {error}") from error

    def _use(self, mapping: str, use: Callable[[ReadableMapping], T]) -> T:
        """Return what `use` returns for a mapping.

        Raises:
            SpecError: The mapping is in use already, so that mappings read each other in a cycle.
        """
        if mapping in self._path:
            chain = " -> ".join([*self._path[self._path.index(mapping) :], mapping])
            raise SpecError.of(
                f"mappings read each other in a cycle: {chain}",
                remedy="Change one of them to read something else.",
            )
        self._path.append(mapping)
        try:
            return use(self.mapping(mapping))
        finally:
            self._path.pop()
