"""The sections of all files of a project, combined. Every entry keeps its location.

Source: the project files' rules, `1. Project files`. The JSON shape is Datalake Foundation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.errors import Fault, Location
from lakewright.spec.expressions.scope import Entry
from lakewright.spec.expressions.values import as_flag
from lakewright.spec.reading.parsed_file import Node, ParsedFile, ValuePath
from lakewright.spec.suggestions import suggestion

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

KEYED = ("lake", "storage", "cluster", "apply", "manifest")
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
        name: The key in the section.
        raw: The content as written. Scalars are texts, or None if there is no value.
        document: The file of the entry.
        path: The position in the file.
        shared: The connection whose settings an entity inherits, as it is written.
    """

    name: str
    raw: Mapping[str, Any]
    document: ParsedFile
    path: ValuePath
    shared: RawDefinition | None = None

    def at(self, *path: str | int) -> Location:
        """Return the location of the entry, or of the value at `path` inside it.

        A setting that an entity inherits is where its connection declares it.
        """
        if self.shared is not None and path[:1] == ("settings",):
            key = path[:2]
            is_own = self.document.has((*self.path, *key))
            if not is_own and self.shared.document.has((*self.shared.path, *key)):
                return self.shared.at(*path)
        return self.document.at((*self.path, *path))


@dataclass(slots=True)
class Profile:
    """The settings of a profile, or of the project itself.

    Attributes:
        place: Where the profile is declared.
        is_enabled: Whether the profile is active by default.
        keyed: The keys of each of the sections `KEYED`, with value and location.
    """

    place: Location | None = None
    is_enabled: bool = False
    environment: dict[str, Entry] = field(default_factory=dict)
    config: dict[str, Entry] = field(default_factory=dict)
    keyed: dict[str, dict[str, Node]] = field(default_factory=lambda: {section: {} for section in KEYED})
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
    foundation: dict[str, Node] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    definitions: dict[str, dict[str, RawDefinition]] = field(
        default_factory=lambda: {name: {} for name in CATEGORIES.values()}
    )
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    entities: list[RawDefinition] = field(default_factory=list)
    tables: list[RawDefinition] = field(default_factory=list)

    def fault(
        self,
        message: str,
        location: Location | None,
        remedy: str | None = None,
        touches: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Add a fault, with the definitions that are wrong because of it."""
        self.faults.append(Fault(message, location, remedy, touches=touches))

    def warn(self, message: str, location: Location | None, remedy: str | None = None) -> None:
        """Add a warning."""
        self.warnings.append(Fault(message, location, remedy))

    def add(self, document: ParsedFile) -> None:
        """Add the sections of a module's file."""
        if document.value is None:
            return
        is_json = document.file.lower().endswith(".json")
        if isinstance(document.value, dict) and not is_json:
            self.add_sections(document, document.value)
        elif isinstance(document.value, dict) and set(FOUNDATION) & set(document.value):
            self._add_foundation(document)
        elif is_json:
            why = f"{document.file} is ignored: it has none of the sections {', '.join(FOUNDATION)}"
            self.warn(why, document.at(), "Move it out of the module's folder.")
        else:
            remedy, touched = f"Sections are {', '.join(CATEGORIES)} and others.", ("module", document.file)
            self.fault("a module must be a map of sections", document.at(), remedy, (touched,))

    def overrides(self, document: ParsedFile) -> Profile:
        """Return a user's own settings, which override those of the project."""
        found, known = Profile(), ("environment", "config")
        for section in self._entries(Node(document, (), document.value)):
            if section.key in known:
                self._add_shared(found, section)
            else:
                self._unknown("section", section, known)
        return found

    def add_sections(self, document: ParsedFile, value: Mapping[str, Any]) -> None:
        """Add the sections of a map. Unknown ones are faults."""
        for key, content in value.items():
            section = Node(document, (key,), content)
            if key in CATEGORIES:
                self._add_definitions(section)
            elif key == TABLES:
                self.tables += self._declared(section)
            elif key in SHARED:
                self._add_shared(self.project, section)
            elif key == "profiles":
                self._add_profiles(section)
            else:
                self._unknown("section", section, ALL)

    def _add_foundation(self, document: ParsedFile) -> None:
        for key, content in document.value.items():
            section = Node(document, (key,), content)
            if key not in FOUNDATION:
                self._unknown("section", section, FOUNDATION)
            elif key == "environment":
                self._add_keys(self.foundation, section)
            else:
                self._add_definitions(section)

    def _unknown(self, what: str, node: Node, known: tuple[str, ...], where: str = "") -> None:
        self.fault(f"unknown {what} {node.key!r}{where}", node.location, suggestion(node.key, known))

    def _add_shared(self, profile: Profile, section: Node) -> None:
        if section.key in KEYED:
            self._add_keys(profile.keyed[section.key], section)
            return
        entries = profile.environment if section.key == "environment" else profile.config
        for key, setting in self._settings(section):
            if key in entries:
                self._clash(f"{section.key} entry {key!r}", setting.location, entries[key].location)
            else:
                entries[key] = setting

    def _add_keys(self, into: dict[str, Node], section: Node) -> None:
        for entry in self._entries(section):
            if (first := into.setdefault(entry.key, entry)) is not entry:
                self._clash(f"key {entry.key!r} of {section.key}", entry.location, first.location)

    def _settings(self, section: Node) -> Iterator[tuple[str, Entry]]:
        content = section.value
        if isinstance(content, dict):
            entries: list[tuple[str | int, Any, Any]] = [(key, key, value) for key, value in content.items()]
        else:
            lines = content if isinstance(content, list) else [] if content is None else [content]
            entries = [(index, *_pair(line)) for index, line in enumerate(lines)]
        for step, key, value in entries:
            location = section.inner(step, value).location
            if not isinstance(key, str) or not key or isinstance(value, (dict, list)):
                self.fault(
                    f"an entry of {section.key} is not key=value", location, "Write it as - key=value."
                )
            else:
                yield key, Entry("" if value is None else value, location)

    def _add_profiles(self, section: Node) -> None:
        for declared in self._entries(section):
            profile = Profile(place=declared.location)
            if (first := self.profiles.setdefault(declared.key, profile)) is not profile:
                self._clash(f"profile {declared.key!r}", declared.location, first.place)
                continue
            for entry in self._entries(declared):
                self._add_to_profile(profile, declared.key, entry)

    def _add_to_profile(self, profile: Profile, name: str, entry: Node) -> None:
        if entry.key == "enabled":
            profile.is_enabled = bool(as_flag(entry.value))
        elif entry.key == "connections":
            profile.connections |= {declared.name: declared for declared in self._declared(entry)}
        elif entry.key in SHARED:
            self._add_shared(profile, entry)
        elif entry.key != "description":
            known = ("enabled", "description", "connections", *SHARED)
            self._unknown("key", entry, known, f" of profile {name!r}")

    def _add_definitions(self, section: Node) -> None:
        category = CATEGORIES[section.key]
        present = self.definitions[category]
        for declared in self._declared(section):
            if category == "entity":
                self.entities.append(declared)
            elif (first := present.setdefault(declared.name, declared)) is not declared:
                touched = ((category, declared.name),)
                self._clash(f"{category} {declared.name!r}", declared.at(), first.at(), touched)

    def key_entities(self) -> None:
        """Add the entities under their names, or under their ids if several entities share a name."""
        first: dict[tuple[str, str], RawDefinition] = {}
        for declared in self.entities:
            destination = str(declared.raw.get("destination") or declared.name)
            other = first.setdefault((declared.name, destination), declared)
            if other is not declared:
                touched = (("entity", declared.name),)
                self._clash(f"entity {declared.name!r}", declared.at(), other.at(), touched)
        names = Counter(name for name, _ in first)
        for (name, _), declared in first.items():
            key = name if names[name] == 1 else str(declared.raw.get("id"))
            raw = {"name": name, **declared.raw}
            self.definitions["entity"].setdefault(key, replace(declared, name=key, raw=raw))

    def _declared(self, section: Node) -> Iterator[RawDefinition]:
        if isinstance(section.value, list) and section.key in LISTED:
            entries = [section.inner(index, raw) for index, raw in enumerate(section.value)]
        else:
            entries = [*self._entries(section)]
        for entry in entries:
            step, raw = entry.path[-1], entry.value
            name = raw.get("name") if isinstance(step, int) and isinstance(raw, dict) else str(step)
            if raw is not None and not isinstance(raw, dict):
                why, remedy = f"{step!r} in {section.key} is not a map", "Write its keys below it, indented."
                self.fault(why, entry.location, remedy, _touched(section.path, name))
            elif not isinstance(name, str) or not name:
                self.fault(f"an entry of {section.key} has no name", entry.location, "Give it a `name`.")
            elif not name.isprintable():
                why = f"the name {name!r} contains characters that cannot be printed"
                remedy = "Choose a printable name: it appears in logs, paths and on screens."
                self.fault(why, entry.location, remedy)
            else:
                yield RawDefinition(name, raw or {}, entry.document, entry.path)

    def _entries(self, node: Node) -> Iterator[Node]:
        if isinstance(node.value, dict):
            yield from (node.inner(key, value) for key, value in node.value.items())
        elif node.value is not None:
            touched = (("module", node.document.file),) if {*node.path[:1]} & CATEGORIES.keys() else ()
            remedy = "Write `name:`, and indent its keys below it."
            self.fault(f"{node.key!r} is not a map of names", node.location, remedy, touched)

    def _clash(
        self,
        what: str,
        location: Location | None,
        first: Location | None,
        touches: tuple[tuple[str, str], ...] = (),
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
