"""Discovery and reading of a project's files, of which every scalar stays the text that the user wrote.

YAML 1.1 reads `NO` as false, `0100` as 64 and `2013-01-01` as a date. Here they stay text until a declared
type converts them. Tags construct nothing, and aliases, depth and size are limited, so that a hostile file
ends in a fault within seconds.

Python's parser provides the values of JSON. Their lines come from the reader of YAML, of which JSON is nearly
a part; it runs only if a fault needs them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from lakewright.errors import Fault, Location, SpecError, UsageError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.spec.reading.parsed_file import DOUBLED, Lines, ParsedFile

PROJECT_FILE = "project.yml"
DOCUMENTATION_FILE = "documentation.yml"
OVERRIDES_FILE = ".flowman-env.yml"
"""A user's own environment and configuration, in the folder where a command is run, as Flowman reads them."""

PROJECT_FILES = (PROJECT_FILE, "project.yaml")
"""Names of a project's file; of several, the first one counts."""

NAMESPACE_FILES = ("default-namespace.yml", "namespace.yml")
"""Names of Flowman's file of settings for all projects, which isn't read."""

NO_PROJECT = Phrase(
    "Go to a project's folder, name it with ",
    Option("--project"),
    ", or make one with ",
    Command("init"),
    ".",
)
"""What to do where there is no project."""

YAML_ENDINGS = (".yml", ".yaml")
MOST_FILES = 10_000

# Limits of size and depth, so that a hostile file ends in a fault within seconds.
LONGEST_YAML, LONGEST_JSON = 4_000_000, 16_000_000
MOST_NODES_YAML, MOST_NODES_JSON = 200_000, 300_000
MOST_FAULTS_JSON = 20
DEEPEST = 50


def find_modules(
    basedir: Path, modules: Sequence[str], document: ParsedFile
) -> tuple[tuple[Path, ...], tuple[Fault, ...]]:
    """Return the files of the modules, and a fault for each missing one.

    The modules keep their order. The files of a folder are sorted by name.
    """
    found: dict[Path, None] = {}
    faults: list[Fault] = []
    for index, module in enumerate(modules):
        path = basedir / module
        try:
            files = tuple(_files_of(path, basedir))
        except OSError as error:
            why = f"module {module!r} cannot be read: {error.strerror}"
            remedy = "Give the user who runs Lakewright access to it."
            faults.append(Fault(why, document.at(("modules", index)), remedy))
            continue
        found.update(dict.fromkeys(files))
        if not path.exists() or (path.is_file() and not files):
            why = "has none of the extensions .yml, .yaml, .json" if path.exists() else "does not exist"
            remedy = "Create it, or remove it from `modules`."
            faults.append(Fault(f"module {module!r} {why}", document.at(("modules", index)), remedy))
    if len(found) > MOST_FILES:
        faults.append(Fault(f"the modules contain more than {MOST_FILES} files", document.at(("modules",))))
    return tuple(found)[:MOST_FILES], tuple(faults)


def _files_of(path: Path, basedir: Path) -> Iterator[Path]:
    if path.is_file():
        candidates = [path]
    else:
        # `Path.glob` leaves out a folder that can't be read.
        candidates = sorted(inner for inner in path.iterdir() if inner.is_file()) if path.is_dir() else []
    own = {basedir / name for name in (*PROJECT_FILES, *NAMESPACE_FILES, DOCUMENTATION_FILE)}
    for candidate in candidates:
        is_hidden = candidate.name.startswith(".") and candidate is not path
        if candidate.suffix.lower() in (*YAML_ENDINGS, ".json") and candidate not in own and not is_hidden:
            yield candidate


def read_document(path: Path, basedir: Path) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return a YAML or JSON file, and its faults. A file that is too large is not opened."""
    file = _shown(path, basedir)
    is_json = path.suffix.lower() == ".json"
    longest = LONGEST_JSON if is_json else LONGEST_YAML
    try:
        size = path.stat().st_size
        if size > longest:
            why = f"the file has {size} bytes, but {longest} is the limit"
            return _refused(why, Location(file), "Split it.")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return _refused("the file is not text in UTF-8", Location(file), "Save it as UTF-8.")
    except OSError as error:
        is_denied = isinstance(error, PermissionError)
        remedy = "Give the user who runs Lakewright access to it." if is_denied else None
        return _refused(f"the file cannot be read: {error.strerror}", Location(file), remedy)
    return read_json(text, file) if is_json else read_yaml(text, file)


def _refused(why: str, location: Location, remedy: str | None = None) -> tuple[ParsedFile, tuple[Fault, ...]]:
    return ParsedFile.empty(location.file), (Fault(why, location, remedy),)


def _shown(path: Path, basedir: Path) -> str:
    """Return the name of a file in errors: relative to the project if the file lies inside or beside it."""
    beside = basedir.parent
    if path.is_relative_to(basedir):
        return path.relative_to(basedir).as_posix()
    return f"../{path.relative_to(beside).as_posix()}" if path.is_relative_to(beside) else path.as_posix()


def project_file(place: Path) -> Path:
    """Return the file of the project in a folder, whether or not it exists; a file is the project's file."""
    if place.is_file():
        return place
    return next((place / name for name in PROJECT_FILES if (place / name).is_file()), place / PROJECT_FILE)


def find_project(start: Path) -> Path:
    """Return the nearest folder from `start` upwards that holds a project.

    Raises:
        UsageError: There is none.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        if project_file(folder).is_file():
            return folder
    raise UsageError(f"there is no {PROJECT_FILE} in {start.absolute()} or above", remedy=NO_PROJECT)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TAGS = frozenset((None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))


_Content: TypeAlias = "ScalarEvent | SequenceStartEvent | MappingStartEvent | AliasEvent"


@dataclass(slots=True)
class _Node:
    """A value with its lines, and the number of values in it with all aliases expanded."""

    value: Any
    lines: Lines
    size: int


def read_yaml(
    text: str, file: str, *, longest: int = LONGEST_YAML, most_nodes: int = MOST_NODES_YAML
) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return the document of a text, and its faults.

    A duplicate key keeps its first value and is a fault. A text that is not YAML gives an empty document and
    a fault.
    """
    builder, node = _Builder(file, most_nodes), _Node(None, Lines(1), 1)
    try:
        if len(text) > longest:
            why = f"the file has more than {longest} characters"
            raise SpecError.of(why, location=Location(file), remedy="Split it.")
        node = builder.read(yaml.parse(text, Loader=_LOADER))
    except SpecError as refused:
        builder.faults += refused.faults
    except yaml.YAMLError as error:
        builder.faults.append(_syntax_fault(error, file, text))
    return ParsedFile(file, node.value, lambda: node.lines), tuple(builder.faults)


def _syntax_fault(error: yaml.YAMLError, file: str, text: str) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    remedy = "Check indentation, quotes and colons."
    if line is not None and _is_indented_by_tab(text, line):
        problem, remedy = "a tab indents the line", "YAML is indented by spaces: replace the tab."
    return Fault(f"not YAML: {problem}", location=Location(file, line, column), remedy=remedy)


def _is_indented_by_tab(text: str, line: int) -> bool:
    written = text.splitlines()[line - 1 : line]
    return bool(written) and "\t" in written[0][: len(written[0]) - len(written[0].lstrip())]


class _Builder:
    """Builds values from the parser's events."""

    def __init__(self, file: str, most_nodes: int) -> None:
        self.file = file
        self.most_nodes = most_nodes
        self.faults: list[Fault] = []
        self.anchors: dict[str, _Node | None] = {}
        self.nodes = 0
        self.path: list[str | int] = []

    def read(self, events: Iterator[Event]) -> _Node:
        documents = 0
        found = _Node(None, Lines(1), 1)
        for event in events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.refused(event, "a second document starts here; a file may contain only one")
            elif isinstance(event, (ScalarEvent, MappingStartEvent, SequenceStartEvent, AliasEvent)):
                found = self.node(event, events, 1)
        return found

    def refused(self, event: Event, message: str, remedy: str | None = None) -> SpecError:
        return SpecError.of(message, location=self.at(event), remedy=remedy)

    def at(self, event: Event) -> Location:
        mark = event.start_mark
        return Location(self.file, mark.line + 1, mark.column + 1) if mark else Location(self.file)

    def node(self, event: _Content, events: Iterator[Event], depth: int) -> _Node:
        if depth > DEEPEST:
            raise self.refused(event, f"values are nested more than {DEEPEST} deep")
        if isinstance(event, AliasEvent):
            node = self.anchored(event)
        else:
            if event.tag not in _TAGS:
                remedy = "Remove the tag; the field's type converts the value."
                raise self.refused(event, f"the tag {event.tag!r} is not supported", remedy)
            if event.anchor is not None:
                self.anchors[event.anchor] = None
            node = self.value(event, events, depth)
            if event.anchor is not None:
                self.anchors[event.anchor] = node
        # Each use of an alias counts all its values, so that a few lines cannot become millions of values.
        self.nodes += node.size if isinstance(event, AliasEvent) else 1
        if self.nodes > self.most_nodes:
            remedy = "Split it, or use fewer aliases."
            raise self.refused(event, f"the file has more than {self.most_nodes} values", remedy)
        return node

    def anchored(self, event: AliasEvent) -> _Node:
        if event.anchor not in self.anchors:
            raise self.refused(event, f"the alias *{event.anchor} has no anchor before it")
        node = self.anchors[event.anchor]
        if node is None:
            raise self.refused(event, f"the alias *{event.anchor} is inside of its own anchor")
        return node

    def value(
        self, event: ScalarEvent | SequenceStartEvent | MappingStartEvent, events: Iterator[Event], depth: int
    ) -> _Node:
        line = _line(event)
        if isinstance(event, ScalarEvent):
            is_null = event.implicit[0] and not event.style and event.value in _NULLS
            return _Node(None if is_null else event.value, Lines(line), 1)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(line, events, depth)
        return self.mapping(line, events, depth)

    def sequence(self, line: int, events: Iterator[Event], depth: int) -> _Node:
        items: list[Any] = []
        inner: dict[str | int, Lines] = {}
        size = 1
        for event in events:
            if isinstance(event, SequenceEndEvent):
                break
            node = self.inside(len(items), event, events, depth)
            inner[len(items)] = node.lines
            items.append(node.value)
            size += node.size
        return _Node(items, Lines(line, inner), size)

    def mapping(self, line: int, events: Iterator[Event], depth: int) -> _Node:
        entries: dict[str, Any] = {}
        inner: dict[str | int, Lines] = {}
        merged: list[_Node] = []
        size = 1
        for event in events:
            if isinstance(event, MappingEndEvent):
                break
            if not isinstance(event, ScalarEvent):
                raise self.refused(event, "a key must be a text")
            key: str = event.value
            self.nodes += 1
            node = self.inside(key, next(events), events, depth)
            size += node.size + 1
            if key == "<<" and not event.style:
                if not isinstance(node.value, dict):
                    raise self.refused(event, "'<<' needs a map, or an alias of one")
                merged.append(node)
            elif key in entries:
                self.faults.append(self.doubled(event, key, inner[key].line))
            else:
                entries[key] = node.value
                inner[key] = Lines(_line(event), node.lines.inner)
        for source in merged:
            for key, value in source.value.items():
                if key not in entries:
                    entries[key], inner[key] = value, source.lines.inner[key]
        return _Node(entries, Lines(line, inner), size)

    def inside(self, step: str | int, event: Event, events: Iterator[Event], depth: int) -> _Node:
        self.path.append(step)
        node = self.node(cast("_Content", event), events, depth + 1)
        self.path.pop()
        return node

    def doubled(self, event: Event, key: str, first: int) -> Fault:
        return Fault(
            f"the key {key!r} occurs twice, first in line {first}",
            location=self.at(event),
            remedy="Remove or rename one of them.",
            details={DOUBLED: (*self.path, key)},
        )


def _line(event: Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


_SPACES = str.maketrans(dict.fromkeys("\t\x85\u2028\u2029", " "))
"""Tabs, which do not separate values in YAML, and characters that end a line there, but not in JSON."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a character of a pair of escapes, which YAML does not have."""


class _NotANumber(ValueError):
    """NaN or Infinity, which are not JSON."""


def read_json(text: str, file: str) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return the document of a text, and its faults.

    Numbers and booleans stay text (`1.50`, `true`); null becomes None. A duplicate key keeps its first value
    and is a fault. A text that is not JSON gives an empty document and a fault.
    """
    has_doubled_keys = False

    def as_map(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_doubled_keys
        found = dict(pairs)
        has_doubled_keys = has_doubled_keys or len(found) < len(pairs)
        return found

    try:
        if len(text) > LONGEST_JSON or text.count(",") + text.count("[") + text.count("{") > MOST_NODES_JSON:
            why = f"the file has more than {LONGEST_JSON} characters or {MOST_NODES_JSON} values"
            return _refused(why, Location(file), "Split it.")
        value = _as_text(
            json.loads(
                text,
                object_pairs_hook=as_map,
                parse_int=str,
                parse_float=str,
                parse_constant=_refuse_constant,
            ),
            0,
        )
    except json.JSONDecodeError as error:
        where = Location(file, error.lineno, error.colno)
        return _refused(f"not JSON: {error.msg}", where, "Check quotes, commas and brackets.")
    except _NotANumber as error:
        found_at = re.search(r"-?(?:NaN|Infinity)", text)
        line = text.count("\n", 0, found_at.start()) + 1 if found_at else None
        return _refused(f"not JSON: {error} is not a number", Location(file, line), "Write a number or null.")
    except RecursionError:
        return _refused(f"values are nested more than {DEEPEST} deep", Location(file))
    if has_doubled_keys:
        document, faults = _read_as_yaml(text, file)
        return document, faults[:MOST_FAULTS_JSON]
    return ParsedFile(file, value, lambda: _read_as_yaml(text, file)[0].lines), ()


def _refuse_constant(name: str) -> Any:
    raise _NotANumber(name)


def _as_text(value: Any, depth: int) -> Any:
    """Return a value with booleans as texts.

    Raises:
        RecursionError: The value is nested too deep.
    """
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = _as_text(inner, depth + 1)
    elif isinstance(value, list):
        value[:] = [_as_text(inner, depth + 1) for inner in value]
    return value


def _read_as_yaml(text: str, file: str) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return the document of a text that is valid JSON, with its lines, and a fault for each doubled key."""
    written = _SURROGATE.sub(r"\\0", text.translate(_SPACES))
    return read_yaml(written, file, longest=LONGEST_JSON, most_nodes=2 * MOST_NODES_JSON)
