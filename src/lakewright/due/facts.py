"""Facts: what is declared, what is there, and what a person has decided, as values.

`Entity` has the facts of one silver table, `Output` those of one instance of a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from lakewright.spec.grants import Grant


class Verb(StrEnum):
    """What a person decides."""

    PLACE = "place"
    END = "end"
    SKIP = "skip"
    TAKE = "take"
    KEEP = "keep"
    RETRY = "retry"
    DROP = "drop"
    NEW = "new"
    WAIT = "wait"
    AGAIN = "again"
    WAIVE = "waive"


class Kind(StrEnum):
    """What a subject is: silver, what jobs build from it, or a program that uses the manifest, too."""

    ENTITY = "entity"
    TARGET = "target"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What a step, decision or lock is about.

    Attributes:
        name: The entity, the target or the program.
        part: A slice of the entity, the instance of the target, or the item; empty for the whole.
    """

    name: str
    part: str = ""
    kind: Kind = Kind.ENTITY

    @property
    def text(self) -> str:
        """The subject as commands name it: `orders`, or `orders/2024-05-01`."""
        return f"{self.name}/{self.part}" if self.part else self.name


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person has decided of a subject.

    Attributes:
        basis: The fact that it answers, such as the fingerprint of a slice: it lapses when this is another.
    """

    subject: Subject
    verb: Verb
    basis: str


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock on a subject.

    Attributes:
        holder: Who has it.
        is_dead: Whether the holder is known to have ended.
        is_kept: Whether only a person may end it then.
    """

    holder: str
    is_dead: bool = False
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice, with the fingerprint of its files.

    Attributes:
        place: Its place in the order of slices; it follows from names alone if all are empty.
        size: The bytes of its files in bronze; 0 if these are gone.
    """

    name: str
    content: str
    place: tuple[object, ...] = ()
    size: int = field(default=0, compare=False)

    @property
    def key(self) -> tuple[Any, ...]:
        """What slices are sorted by."""
        return (self.place, self.name)


class TimeSource(StrEnum):
    """What gives a slice its processing time.

    The date in its name, a date of a declared form in it, an expression, the latest value of a column,
    the clock, the clock because the name has no date, or what was recorded when it was processed before.
    """

    NAME = "name"
    FORM = "form"
    EXPRESSION = "expression"
    COLUMN = "column"
    CLOCK = "clock"
    UNDATED = "undated"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class SliceTime:
    """The processing time of a slice, at which its versions begin.

    Attributes:
        source: What gives it.
        declared: The form, the expression or the column.
        at: The time, in the lake's time zone; None if it is known only when the slice is processed.
    """

    source: TimeSource
    declared: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """Rows that another writer has changed between two slices, up to a version of the table."""

    version: int


Entry: TypeAlias = Slice | Foreign
"""What a table holds: a slice, or the changes of another writer."""


class Effect(StrEnum):
    """How slices make a table: by the last one alone, in any order, or in their order."""

    LAST = "last"
    ANY_ORDER = "any_order"
    IN_ORDER = "in_order"


class RecordState(StrEnum):
    """What the manifest says of a slice."""

    PROCESSED = "processed"
    FAILED = "failed"
    SKIPPED = "skipped"
    WAITING = "waiting"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Record:
    """What the manifest says of a slice, with the fingerprint and the declaration that it says it of.

    Attributes:
        attempt: What distinguishes a failure from the next one.
        place: The place of the slice, as `Slice.place`.
        why: The error of a failure, or what is wrong with the records themselves.
        remedy: What mends it, as the error says.
        permitted_by: The grant with which a failed slice is applied; None if no grant helps.
    """

    state: RecordState
    content: str
    digest: str = ""
    attempt: str = ""
    place: tuple[object, ...] = ()
    why: str = ""
    remedy: str | None = None
    permitted_by: Grant | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A silver table.

    Attributes:
        held: What its last version builds on, in the order in which it was applied.
        digest: The declaration with which the rows were made; None if there are none.
        is_there: Whether it exists, and is no older copy, which lacks commits that the manifest has recorded.
        id: The identity of the table that is there, or was there last.
        is_older: Whether it is an older copy.
        outdated: What of the declaration has changed since, if it is another one.
    """

    held: tuple[Entry, ...] = ()
    digest: str | None = None
    is_there: bool = True
    id: str = ""
    is_older: bool = False
    outdated: tuple[str, ...] = ()

    @property
    def slices(self) -> tuple[Slice, ...]:
        """The slices that it holds."""
        return tuple(each for each in self.held if isinstance(each, Slice))


@dataclass(frozen=True, slots=True)
class Entity:
    """The facts of a silver table and its slices.

    Attributes:
        digest: What is declared now of all that decides rows: key, strategy, columns.
        effect: How slices make the table.
        bronze: The slices that are in bronze, by name.
        table: The table.
        records: What the manifest says of slices, by their names.
        late: What is decided beforehand of a late slice; None if a person is asked.
        changed: The same of a processed slice whose files have changed.
        most_replayed: How many slices a replay may have without a grant.
        unclaimed: For slices that only a job takes whose parameters are unknown: the names of these.
        unrecorded: The slices of rewinds that the table's log has and the manifest lacks; `records` has them
            as they are once these are recorded.
        refused: Why a run that takes a slice would process none, as its time is wrong, by the slice's name.
        is_enabled: Whether its slices are processed at all.
        incomplete: The names of slices in bronze that are still being written.
        unreadable: Why slices in bronze can't be read, by name.
        vanished: The names of processed slices that are no longer in bronze.
        times: The processing times of slices that may be processed, by their names.
        has_versions: Whether versions of records begin at these times.
        no_files: Where its slices were to be found outside of the lake; empty if there are some.
        elsewhere: The number of open slices that were recorded in other folders, by these.
        unfit: The failures of slices that a replay could not apply, by their names.
        aside: The number of bad rows of slices that lie in quarantine, by name.
        quarantine: The folder of these.
        most_replayed_bytes: How many bytes a replay may have without a grant.
        emptied_by: The run in which a person emptied or removed the table, if it has held nothing since.
        taken_over: What its next slice takes over: the changes to another tool's table, or the past.
    """

    name: str
    digest: str
    effect: Effect = Effect.IN_ORDER
    bronze: Mapping[str, Slice] = field(default_factory=dict)
    table: Table = Table()
    records: Mapping[str, Record] = field(default_factory=dict)
    late: Verb | None = None
    changed: Verb | None = None
    most_replayed: int = 100
    unclaimed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unrecorded: tuple[Slice, ...] = ()
    refused: Mapping[str, Unknown] = field(default_factory=dict)
    is_enabled: bool = True
    incomplete: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    vanished: tuple[str, ...] = ()
    times: Mapping[str, SliceTime] = field(default_factory=dict)
    has_versions: bool = False
    no_files: str = ""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    unfit: Mapping[str, Record] = field(default_factory=dict)
    aside: Mapping[str, int] = field(default_factory=dict)
    quarantine: str = ""
    most_replayed_bytes: int = 10 << 30
    emptied_by: str = ""
    taken_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Build:
    """The last build of an instance of a target.

    Attributes:
        definition: The digest of what was declared.
        inputs: The marks of what was read, by place.
        output: The mark of what was written; None as long as the build has only begun.
    """

    definition: str
    inputs: Mapping[str, str]
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """What VERIFY of an instance of a target reads, with the last verdict on it.

    Attributes:
        subject: The target and its instance.
        is_good: The verdict; None if a run was to check it, and there is none.
        checked: The marks of what was checked, by place.
        inputs: Its present marks; None for what does not exist.
        job: The job that checks it.
        instance: The parameters of the instance.
    """

    subject: Subject
    is_good: bool | None
    checked: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    job: str = ""
    instance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """The facts of one instance of a target.

    Attributes:
        subject: The target and its instance.
        definition: The digest of what is declared now.
        inputs: The present marks of what it reads, by place; None for what does not exist.
        slices: For entities, the slices that concern the instance; others concern it whole.
        mark: The present mark of what it has written; None if that is gone or empty.
        build: Its last build; None if there is none.
        is_wanted: Whether a job asks for it.
        is_append: Whether a build adds rows to those that are there.
        only_if_empty: Whether its owner said not to build it again while it is filled.
        is_withdrawn: Whether a person has emptied or removed it since.
        is_unrecorded: Whether its last build is in the log of its table only.
        is_unsure: Whether nobody knows if an append that was cut off has added its rows.
        makers: For places that are named otherwise than what makes them: the entities and targets that do.
        unseen: The places of which nobody knows whether they have changed.
        is_refreshed: Whether it is built again from time to time because of these.
        is_refresh_due: Whether it is time for that.
        foreign: What another writer has made of its rows since the build: a version of the table, or the mark
            of its files; empty for nothing.
        job: The job that builds it.
        instance: The parameters of the instance.
    """

    subject: Subject
    definition: str
    inputs: Mapping[str, str | None]
    slices: Mapping[str, frozenset[str]] = field(default_factory=dict)
    mark: str | None = None
    build: Build | None = None
    is_wanted: bool = True
    is_append: bool = False
    only_if_empty: bool = False
    is_withdrawn: bool = False
    is_unrecorded: bool = False
    is_unsure: bool = False
    makers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    is_refreshed: bool = False
    is_refresh_due: bool = False
    foreign: int | str = ""
    job: str = ""
    instance: Mapping[str, str] = field(default_factory=dict)

    def makers_of(self, place: str) -> frozenset[str]:
        """Return the entities and targets that make a place, which it is named by unless told otherwise."""
        return self.makers.get(place, frozenset({place}))

    @property
    def whole(self) -> Subject:
        """The target, in all instances."""
        return Subject(self.subject.name, "", self.subject.kind)


@dataclass(frozen=True, slots=True)
class Undeclared:
    """An entity that the manifest has slices of, and the project does not declare.

    Attributes:
        application: The application that its slices were recorded for.
        processed: The number of slices that it has processed, and no declared entity as well.
        others: The number of all its other slices.
    """

    name: str
    application: str
    processed: int
    others: int = 0


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why something could not be observed.

    Attributes:
        code: The code of the error; empty if it can be observed in another way only.
        remedy: What mends it, as the error says.
        permitted_by: The grant that permits what the error refuses; None if no grant helps.
    """

    why: str
    code: str = ""
    remedy: str | None = None
    permitted_by: Grant | None = None


@dataclass(frozen=True)
class Facts:
    """What is known of a lake.

    Attributes:
        entities: The entities.
        outputs: The instances of targets, each after those whose outputs it reads.
        decisions: What was decided, the last decision on a subject last.
        locks: The locks, by their subjects.
        unknown: Why something could not be observed, by its subject.
        undeclared: Entities that are not declared, and have slices.
        unrecorded: Targets of which something is there, and no build of any instance is recorded.
        items: Failed items of programs that are no entities, and those that runs have left locked, with the
            lock: the program and the item.
        checks: What VERIFY of instances of targets has found.
    """

    entities: tuple[Entity, ...] = ()
    outputs: tuple[Output, ...] = ()
    decisions: tuple[Decision, ...] = ()
    locks: Mapping[Subject, Lock] = field(default_factory=dict)
    unknown: Mapping[Subject, Unknown] = field(default_factory=dict)
    undeclared: tuple[Undeclared, ...] = ()
    unrecorded: tuple[Subject, ...] = ()
    items: Mapping[Subject, Lock | None] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()

    def decided(self, subject: Subject, basis: str) -> Verb | None:
        """Return what was decided last of a subject whose fact is the basis; None without such a decision."""
        return self._last.get((subject, basis))

    @cached_property
    def _last(self) -> Mapping[tuple[Subject, str], Verb]:
        return {(each.subject, each.basis): each.verb for each in self.decisions}
