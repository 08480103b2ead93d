"""Reader of YAML files, which keeps every scalar as the text that the user wrote.

YAML 1.1 reads `NO` as false, `0100` as 64 and `2013-01-01` as a date. Here they stay text until a declared
type converts them. Tags construct nothing, and aliases, depth and size are limited, so that a hostile file
ends in a fault within seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.reading.parsed_file import DOUBLED, Lines, ParsedFile

LONGEST = 4_000_000
DEEPEST = 50
MOST_NODES = 200_000

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
    text: str, file: str, *, longest: int = LONGEST, most_nodes: int = MOST_NODES
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
