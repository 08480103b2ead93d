"""What the documentation of a project tells, as values: items, their columns, checks and neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "CATEGORIES",
    "CheckResult",
    "CheckStatus",
    "Column",
    "Document",
    "Ending",
    "Item",
    "LastRun",
    "Ref",
    "Sample",
    "Source",
]

CATEGORIES = ("relation", "mapping", "target", "entity")
"""Categories of items, in the order of the chapters."""

T = TypeVar("T")


class Ref(NamedTuple):
    """An item by its category and name."""

    category: str
    name: str


class Source(NamedTuple):
    """A column of an item that another column is made of."""

    item: Ref
    column: str


class CheckStatus(StrEnum):
    """How a check ended."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    ERROR = "ERROR"
    NOT_RUN = "NOT_RUN"


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows, as texts; None is null."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check and how it ended.

    Attributes:
        label: What must hold, in a few words.
        passed: Rows, or keys, that are as they must be; None where nothing was counted.
        failed: Those that aren't.
        message: What else is to be said: values that a query gave, or what went wrong.
        sample: Some rows that fail.
    """

    kind: str
    label: str
    column: str | None = None
    description: str | None = None
    status: CheckStatus = CheckStatus.NOT_RUN
    passed: int | None = None
    failed: int | None = None
    message: str | None = None
    sample: Sample = field(default_factory=Sample)

    @property
    def is_bad(self) -> bool:
        """Whether it doesn't hold, or could not be found out."""
        return self.status in (CheckStatus.FAILED, CheckStatus.ERROR)


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        marks: What it is besides: `partition`, `business key`.
        sources: Columns of the item's neighbours that it is made of.
        origins: Columns where that begins: of relations that nothing here fills.
        made: The expression that makes it, where one is declared.
    """

    name: str
    type: str = ""
    nullable: bool = True
    description: str | None = None
    marks: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    origins: tuple[Source, ...] = ()
    made: str | None = None
    checks: tuple[CheckResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a target ended in one phase of the last run."""

    phase: str
    status: str
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A relation, mapping, target or entity.

    Attributes:
        facts: What is told in a word or two, by name.
        code: A query or the like.
        note: Why something of it could not be told.
        reads: Items that it is made of.
        read_by: Items that are made of it.
        endings: Of a target, in the last run.
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
        """Return the checks of its rows and of its columns."""
        return (*self.checks, *(check for column in self.columns for check in column.checks))

    @property
    def last_status(self) -> str | None:
        """The status of the last phase in which the last run did something with it."""
        told = [ending.status for ending in self.endings if ending.status != "SKIPPED"]
        return told[-1] if told else (self.endings[-1].status if self.endings else None)

    @property
    def is_bad(self) -> bool:
        """Whether a check fails, or the last run did."""
        is_failed = any(ending.status in ("FAILED", "BLOCKED", "ABORTED") for ending in self.endings)
        return is_failed or any(check.is_bad for check in self.all_checks())


@dataclass(frozen=True, slots=True)
class LastRun:
    """The run whose endings are told."""

    run_id: str
    job: str
    phase: str
    status: str
    started: str
    finished: str | None
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """Everything that is told.

    Attributes:
        made: When, as ISO 8601 in UTC.
        parameters: The job's, with which expressions were evaluated.
        jobs: Name, description, names of parameters and targets.
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
        """Return every check with the item that has it."""
        return tuple((item, check) for item in self.items for check in item.all_checks())

    def edges(self) -> tuple[tuple[Ref, Ref], ...]:
        """Return the pairs of an item and one that is made of it."""
        known = {item.ref for item in self.items}
        return tuple((ref, item.ref) for item in self.items for ref in item.reads if ref in known)

    def only(self, shows: Callable[[Ref], bool]) -> Document:
        """Return the document without some items; what was made of them is made of what they were."""
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
        """Return the document with every text in it as `hide` returns it."""
        made: Document = _each_text(self, hide)
        return made

    def as_json(self) -> dict[str, Any]:
        """Return the document as JSON."""
        made: dict[str, Any] = _plain(self)
        return made


def _visible(
    refs: Iterable[Ref], onwards: Mapping[Ref, tuple[Ref, ...]], shows: Callable[[Ref], bool]
) -> tuple[Ref, ...]:
    """Return the refs that are shown, and in place of each other one those that come after it."""
    found: dict[Ref, None] = {}
    seen: set[Ref] = set()
    waiting = list(refs)[::-1]
    while waiting:
        ref = waiting.pop()
        if ref in seen:
            continue
        seen.add(ref)
        if shows(ref):
            found[ref] = None
        else:
            waiting += reversed(onwards.get(ref, ()))
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return _plain(value._asdict()) if hasattr(value, "_asdict") else [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value


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
