"""The content of a project's documentation as values: items with their columns, checks and neighbours.

Field names are those of `documentation.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from lakewright.checks.check import CheckResult
from lakewright.manifest.plain_values import document_of

CATEGORIES = ("relation", "mapping", "target", "entity")
"""Categories of items, from the raw data to the silver tables."""

T = TypeVar("T")


class Ref(NamedTuple):
    """Identifies an item by its category and name."""

    category: str
    name: str


class Source(NamedTuple):
    """A column of an item from which another column is computed."""

    item: Ref
    column: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an item.

    Attributes:
        marks: Roles of the column, such as `partition` or `business key`.
        source: The column of the slices that an entity takes it from, if that has another name.
        sources: Columns of neighbouring items from which it is computed directly.
        origins: Columns at the start of its lineage, in relations that no target of the project writes.
        made: The expression that computes it, if one is declared.
    """

    name: str
    type: str = ""
    nullable: bool = True
    description: str | None = None
    marks: tuple[str, ...] = ()
    source: str | None = None
    sources: tuple[Source, ...] = ()
    origins: tuple[Source, ...] = ()
    made: str | None = None
    checks: tuple[CheckResult, ...] = ()

    @property
    def has_lineage(self) -> bool:
        """Whether anything is known of how the column is computed."""
        return bool(self.sources or self.origins or self.made)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a target ended in one phase of the last run; `seconds` is how long it took."""

    phase: str
    status: str
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str | None = None

    @property
    def is_bad(self) -> bool:
        """Whether the target failed, was blocked or was aborted."""
        return self.status in ("FAILED", "BLOCKED", "ABORTED")

    @property
    def explanation(self) -> str:
        """The reasons and the error, on one line."""
        return "; ".join([*self.reasons, *([self.error] if self.error else [])])


@dataclass(frozen=True, slots=True)
class Item:
    """A relation, mapping, target or entity.

    Attributes:
        facts: Short properties, as name and value.
        code: The query, or the transformations of an entity.
        note: Why a part of the item could not be determined.
        reads: Items that it reads.
        read_by: Items that read it, or that a target writes.
        endings: How a target ended in each phase of the last run.
    """

    ref: Ref
    kind: str
    description: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    code: str | None = None
    note: str | None = None
    columns: tuple[Column, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    reads: tuple[Ref, ...] = ()
    read_by: tuple[Ref, ...] = ()
    endings: tuple[Ending, ...] = ()

    def all_checks(self) -> tuple[CheckResult, ...]:
        """Return the checks of the rows, then those of each column."""
        return (*self.checks, *(check for column in self.columns for check in column.checks))

    @property
    def last_status(self) -> str | None:
        """The status of the last phase that was not skipped; SKIPPED if all were, None if there was none."""
        done = [ending.status for ending in self.endings if ending.status != "SKIPPED"]
        return done[-1] if done else (self.endings[-1].status if self.endings else None)

    @property
    def is_bad(self) -> bool:
        """Whether a check fails, or the last run failed on the item."""
        return any(ending.is_bad for ending in self.endings) or any(
            check.is_bad for check in self.all_checks()
        )


@dataclass(frozen=True, slots=True)
class LastRun:
    """The run that the endings of targets come from; instants are ISO 8601 in UTC."""

    run_id: str
    job: str
    phase: str
    status: str
    started: str
    finished: str | None
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """The whole content of the documentation.

    Attributes:
        made: When it was gathered, as ISO 8601 in UTC.
        tool: Name and version of the program that gathered it.
        job: The job whose names expressions were evaluated with.
        parameters: The values of its parameters.
        jobs: Name, description, parameter names and target names of each job.
    """

    project: str
    made: str
    tool: str
    version: str | None = None
    description: str | None = None
    job: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[tuple[str, str | None, tuple[str, ...], tuple[str, ...]], ...] = ()
    items: tuple[Item, ...] = ()
    last_run: LastRun | None = None

    def of(self, category: str) -> tuple[Item, ...]:
        """Return the items of a category."""
        return tuple(item for item in self.items if item.ref.category == category)

    def checks(self) -> tuple[tuple[Item, CheckResult], ...]:
        """Return each check with the item that declares it."""
        return tuple((item, check) for item in self.items for check in item.all_checks())

    def edges(self) -> tuple[tuple[Ref, Ref], ...]:
        """Return the pairs of an item and an item that reads it."""
        known = {item.ref for item in self.items}
        return tuple((ref, item.ref) for item in self.items for ref in item.reads if ref in known)

    def only(self, shows: Callable[[Ref], bool]) -> Document:
        """Return the document with only some items; neighbours of a hidden item become neighbours."""
        before = {item.ref: item.reads for item in self.items}
        after = {item.ref: item.read_by for item in self.items}
        return replace(
            self,
            items=tuple(
                replace(
                    item,
                    reads=_visible(item.reads, before, shows),
                    read_by=_visible(item.read_by, after, shows),
                )
                for item in self.items
                if shows(item.ref)
            ),
        )

    def redacted(self, hide: Callable[[str], str]) -> Document:
        """Return the document with `hide` applied to every text in it."""
        redacted: Document = _each_text(self, hide)
        return redacted

    def as_json(self) -> dict[str, Any]:
        """Return the document as JSON."""
        return document_of(self)


def _visible(
    refs: Iterable[Ref], onwards: Mapping[Ref, tuple[Ref, ...]], shows: Callable[[Ref], bool]
) -> tuple[Ref, ...]:
    """Return the refs, with each hidden one replaced by the nearest visible ones behind it."""
    return tuple(filter(shows, walk(refs, lambda ref: () if shows(ref) else onwards.get(ref, ()))))


def walk(
    starts: Iterable[T],
    onwards: Callable[[T], Iterable[T]],
    key: Callable[[T], Hashable] = lambda node: node,
) -> Iterator[T]:
    """Yield the nodes of a graph that are reached from some, each once, those behind a node right after it.

    Args:
        starts: The nodes to start from.
        onwards: Returns the nodes behind a node.
        key: Returns what is equal for equal nodes; default: the node itself.
    """
    seen: set[Hashable] = set()
    waiting = list(starts)[::-1]
    while waiting:
        node = waiting.pop()
        if key(node) not in seen:
            seen.add(key(node))
            yield node
            waiting += list(onwards(node))[::-1]


def origins_of(start: Source, onwards: Callable[[Source], Iterable[Source]]) -> tuple[Source, ...]:
    """Return the columns of relations and entities from which a column is computed in the end.

    Args:
        start: The column.
        onwards: Returns the columns from which a column is computed directly.
    """
    found = walk([start], onwards, key=lambda each: (each.item, each.column.lower()))
    ends = (each for each in found if each != start and not onwards(each))
    return tuple(each for each in ends if each.item.category != "mapping")


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, StrEnum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(inner, change) for key, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: _each_text(getattr(value, each.name), change) for each in fields(value)}
        return replace(value, **changed)
    if isinstance(value, tuple):
        inner = [_each_text(each, change) for each in value]
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    return value
