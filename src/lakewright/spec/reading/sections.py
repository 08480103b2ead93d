"""The sections of all files of a project, combined. Every entry keeps its location.

Source: the project files' rules, `1. Project files`. The JSON shape is Datalake Foundation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.errors import Fault, Location
from lakewright.spec.reading.parsed_file import LazyLocation, ParsedFile, ValuePath
from lakewright.spec.suggestions import suggestion

__all__ = ["ALL", "CATEGORIES", "KEYED", "LISTED", "Profile", "RawDefinition", "Sections", "Setting"]

CATEGORIES: Mapping[str, str] = {
    "relations": "relation",
    "mappings": "mapping",
    "targets": "target",
    "connections": "connection",
    "entities": "entity",
    "jobs": "job",
    "tests": "test",
    "templates": "template",
    "triggers": "trigger",
}
"""Sections of named definitions, with the category of their definitions."""

TABLES = "tables"
"""The section of tables in the short form."""

KEYED = ("lake", "storage", "cluster", "manifest")
"""Sections with one value a key, which the project file may have too."""

SHARED = ("environment", "config", *KEYED)
"""Sections that a profile may have too."""

FOUNDATION = ("environment", "connections", "entities")
"""Sections of a file in Datalake Foundation's shape."""

ALL = (*CATEGORIES, *SHARED, TABLES, "profiles")
"""The sections of a file."""

LISTED = ("connections", "entities")
"""Sections that may be lists of maps with a `name`, as Datalake Foundation writes them."""


@dataclass(frozen=True, slots=True)
class RawDefinition:
    """A named entry of a section as the user wrote it, with its location.

    Attributes:
        shared: The connection whose settings an entity inherits.
    """

    name: str
    raw: Mapping[str, Any]
    document: ParsedFile
    path: ValuePath
    shared: RawDefinition | None = None

    def at(self, *path: str | int) -> Location:
        """Return the location of the entry, or of a value inside it."""
        return self.document.at((*self.path, *path))


@dataclass(frozen=True, slots=True)
class Setting:
    """One `key=value` entry, with its location."""

    text: str
    location: Location


@dataclass(slots=True)
class Profile:
    """The settings of a profile, or of the project itself.

    Attributes:
        is_enabled: Whether the profile is active by default.
        keyed: The keys of each of the sections `KEYED`, with value and location.
    """

    is_enabled: bool = False
    environment: dict[str, Setting] = field(default_factory=dict)
    config: dict[str, Setting] = field(default_factory=dict)
    keyed: dict[str, dict[str, tuple[Any, LazyLocation]]] = field(
        default_factory=lambda: {section: {} for section in KEYED}
    )
    connections: dict[str, RawDefinition] = field(default_factory=dict)


@dataclass(slots=True)
class Sections:
    """The content of all files, by section.

    Attributes:
        project: The project's own settings.
        foundation: The keys of Datalake Foundation's `environment`, with value and location.
        entities: All entities, before `key_entities` names them.
        tables: The tables of the short form.
    """

    project: Profile = field(default_factory=Profile)
    foundation: dict[str, tuple[Any, LazyLocation]] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    definitions: dict[str, dict[str, RawDefinition]] = field(
        default_factory=lambda: {name: {} for name in CATEGORIES.values()}
    )
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    entities: list[RawDefinition] = field(default_factory=list)
    tables: list[RawDefinition] = field(default_factory=list)
    profile_places: dict[str, Location] = field(default_factory=dict)

    def fault(
        self,
        message: str,
        location: Location,
        remedy: str | None = None,
        touches: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Add a fault, with the definitions that are wrong because of it."""
        self.faults.append(Fault(message, location, remedy, touches=touches))

    def add(self, document: ParsedFile) -> None:
        """Add the sections of a module's file."""
        if document.value is None:
            return
        if not isinstance(document.value, dict):
            self._no_module(document)
        elif document.file.lower().endswith(".json"):
            self._add_foundation(document)
        else:
            self.add_sections(document, document.value, ALL)

    def overrides(self, document: ParsedFile) -> Profile:
        """Return a user's own settings, which override those of the project."""
        found, known = Profile(), ("environment", "config")
        for section, content in self._map(document, (document.file,), document.value).items():
            if section in known:
                self._add_shared(found, document, (section,), content)
            else:
                remedy = suggestion(section, known) or "It has the sections environment and config."
                self.fault(f"unknown section {section!r}", document.at((section,)), remedy)
        return found

    def _no_module(self, document: ParsedFile) -> None:
        if document.file.lower().endswith(".json"):
            self._ignore(document)
        else:
            self.fault(
                "a module must be a map of sections",
                document.at(),
                f"Sections are {', '.join(CATEGORIES)} and others.",
                (("module", document.file),),
            )

    def _ignore(self, document: ParsedFile) -> None:
        why = f"{document.file} is ignored: it has none of the sections {', '.join(FOUNDATION)}"
        self.warnings.append(Fault(why, document.at(), "Move it out of the module's folder."))

    def add_sections(self, document: ParsedFile, value: Mapping[str, Any], known: tuple[str, ...]) -> None:
        """Add the known sections of a map. Unknown sections are faults."""
        for section, content in value.items():
            if section not in known:
                self.fault(
                    f"unknown section {section!r}", document.at((section,)), suggestion(section, known)
                )
            elif section in CATEGORIES:
                self._add_definitions(document, section, content)
            elif section == TABLES:
                self.tables += self._declared(document, (section,), content)
            elif section in SHARED:
                self._add_shared(self.project, document, (section,), content)
            elif section == "profiles":
                self._add_profiles(document, content)

    def _add_foundation(self, document: ParsedFile) -> None:
        if not set(FOUNDATION) & set(document.value):
            self._ignore(document)
            return
        for section, content in document.value.items():
            if section not in FOUNDATION:
                self.fault(
                    f"unknown section {section!r}", document.at((section,)), suggestion(section, FOUNDATION)
                )
            elif section == "environment":
                self._add_keys(self.foundation, document, (section,), content)
            else:
                self._add_definitions(document, section, content)

    def _add_shared(self, profile: Profile, document: ParsedFile, path: ValuePath, content: Any) -> None:
        section = str(path[-1])
        if section in KEYED:
            self._add_keys(profile.keyed[section], document, path, content)
            return
        entries = profile.environment if section == "environment" else profile.config
        for key, setting in self._settings(document, path, content):
            if key in entries:
                self._clash(f"{section} entry {key!r}", setting.location, entries[key].location)
            else:
                entries[key] = setting

    def _add_keys(
        self, into: dict[str, tuple[Any, LazyLocation]], document: ParsedFile, path: ValuePath, content: Any
    ) -> None:
        for key, value in self._map(document, path, content).items():
            place = LazyLocation(document, (*path, key))
            if key in into:
                self._clash(f"key {key!r} of {path[-1]}", place.location, into[key][1].location)
            else:
                into[key] = (value, place)

    def _settings(self, document: ParsedFile, path: ValuePath, content: Any) -> Iterator[tuple[str, Setting]]:
        if isinstance(content, dict):
            entries: list[tuple[str | int, Any, Any]] = [(key, key, value) for key, value in content.items()]
        else:
            lines = content if isinstance(content, list) else [] if content is None else [content]
            entries = [(index, *_pair(line)) for index, line in enumerate(lines)]
        for step, key, value in entries:
            location = document.at((*path, step))
            if not isinstance(key, str) or not key or isinstance(value, (dict, list)):
                self.fault(f"an entry of {path[-1]} is not key=value", location, "Write it as - key=value.")
            else:
                yield key, Setting("" if value is None else value, location)

    def _add_profiles(self, document: ParsedFile, content: Any) -> None:
        for name, inner in self._map(document, ("profiles",), content).items():
            path: ValuePath = ("profiles", name)
            location = document.at(path)
            if name in self.profiles:
                self._clash(f"profile {name!r}", location, self.profile_places[name])
                continue
            self.profiles[name] = Profile()
            self.profile_places[name] = location
            for key, value in self._map(document, path, inner).items():
                self._add_to_profile(self.profiles[name], document, (*path, key), value)

    def _add_to_profile(self, profile: Profile, document: ParsedFile, path: ValuePath, value: Any) -> None:
        key = str(path[-1])
        known = ("enabled", "description", "connections", *SHARED)
        if key == "enabled":
            profile.is_enabled = str(value).lower() in ("true", "yes", "on")
        elif key == "connections":
            for declared in self._declared(document, path, value):
                profile.connections[declared.name] = declared
        elif key in SHARED:
            self._add_shared(profile, document, path, value)
        elif key != "description":
            self.fault(
                f"unknown key {key!r} of profile {path[1]!r}", document.at(path), suggestion(key, known)
            )

    def _add_definitions(self, document: ParsedFile, section: str, content: Any) -> None:
        category = CATEGORIES[section]
        present = self.definitions[category]
        for declared in self._declared(document, (section,), content):
            if category == "entity":
                self.entities.append(declared)
            elif declared.name in present:
                first = present[declared.name].at()
                touched = ((category, declared.name),)
                self._clash(f"{category} {declared.name!r}", declared.at(), first, touched)
            else:
                present[declared.name] = declared

    def key_entities(self) -> None:
        """Add the entities under their names, or under their ids if several entities share a name."""
        first: dict[tuple[str, str], RawDefinition] = {}
        for declared in self.entities:
            other = first.setdefault((declared.name, _destination(declared)), declared)
            if other is not declared:
                touched = (("entity", declared.name),)
                self._clash(f"entity {declared.name!r}", declared.at(), other.at(), touched)
        names = Counter(name for name, _ in first)
        for (name, _), declared in first.items():
            key = name if names[name] == 1 else str(declared.raw.get("id"))
            raw = {"name": name, **declared.raw}
            self.definitions["entity"].setdefault(key, replace(declared, name=key, raw=raw))

    def _declared(self, document: ParsedFile, path: ValuePath, content: Any) -> Iterator[RawDefinition]:
        if isinstance(content, list) and path[-1] in LISTED:
            entries: list[tuple[str | int, Any]] = list(enumerate(content))
        else:
            entries = list(self._map(document, path, content).items())
        for step, raw in entries:
            inner: ValuePath = (*path, step)
            name = raw.get("name") if isinstance(step, int) and isinstance(raw, dict) else str(step)
            if raw is not None and not isinstance(raw, dict):
                self.fault(
                    f"{step!r} in {path[-1]} is not a map",
                    document.at(inner),
                    "Write its keys below it, indented.",
                    _touched(path, name),
                )
            elif not isinstance(name, str) or not name:
                self.fault(f"an entry of {path[-1]} has no name", document.at(inner), "Give it a `name`.")
            elif not name.isprintable():
                self.fault(
                    f"the name {name!r} contains characters that cannot be printed",
                    document.at(inner),
                    "Choose a printable name: it appears in logs, paths and on screens.",
                )
            else:
                yield RawDefinition(name, raw or {}, document, inner)

    def _map(self, document: ParsedFile, path: ValuePath, content: Any) -> Mapping[str, Any]:
        if isinstance(content, dict):
            return content
        if content is not None:
            self.fault(
                f"{path[-1]!r} is not a map of names",
                document.at(path),
                "Write `name:`, and indent its keys below it.",
                (("module", document.file),) if path[0] in CATEGORIES else (),
            )
        return {}

    def _clash(
        self, what: str, location: Location, first: Location, touches: tuple[tuple[str, str], ...] = ()
    ) -> None:
        remedy = "Rename or remove one of them."
        self.fault(f"{what} is declared twice, first at {first}", location, remedy, touches)


def _touched(path: ValuePath, name: object) -> tuple[tuple[str, str], ...]:
    """Return the definition of an entry in a section, if it has a name; empty for one of a profile."""
    is_named = len(path) == 1 and isinstance(name, str)
    return ((CATEGORIES[str(path[0])], str(name)),) if is_named else ()


def _pair(line: Any) -> tuple[Any, Any]:
    """Return key and value of `key=value`, or None and None for anything else."""
    if not isinstance(line, str) or "=" not in line:
        return None, None
    key, _, value = line.partition("=")
    return key.strip(), value.strip()


def _destination(declared: RawDefinition) -> str:
    return str(declared.raw.get("destination") or declared.name)
