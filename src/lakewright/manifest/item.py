"""Items: the state that an item's records fold to, and the rules for which record may follow.

An item consists only of its records. `Item.after(record)` holds all rules: back ends fold with it on every
write, and `fsck` folds with it again on read. The folded value is small and has a JSON form, so a back end
can store it with the records and answer without reading them.

Source: `processing-manifest.md`, "Item" and "State".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from lakewright.errors import IllegalTransition
from lakewright.manifest.record import ANYONE, Application, Record, State, format_instant, parse_instant
from lakewright.manifest.verdict import Verdict, decide_verdict


@dataclass(frozen=True, slots=True)
class Mark:
    """The part of a record that an item keeps.

    Attributes:
        since: The time of the record.
        note: Some entries of its payload's data.
    """

    record_id: str
    application: Application
    run_id: str | None
    since: datetime
    sequence: int
    note: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Record, *keys: str) -> Mark:
        """Return the mark of a record, with the given entries of its payload's data as note."""
        content = {} if record.is_foreign else record.content
        note = {key: content[key] for key in keys if key in content}
        return cls(
            record.record_id, record.application, record.run_id, record.timestamp, record.sequence, note
        )


@dataclass(frozen=True, slots=True)
class Item:
    """The state that an item's records, in order, fold to.

    Attributes:
        sequence: The sequence of the last record; 0 if there is none.
        revision: The number of NEW records; 1 also for an item that never had one.
        state: The state of the last record.
        since: The time of the last record.
        new: The NEW record of this revision. Note: `fingerprint`, `entity`, `slice`, `allow_late`,
            `processing_time`, `emptied_by`.
        processing: The open PROCESSING, if there is one: the item is locked.
        failed: The unresolved FAILED, if there is one. Note: `error`, `holds_back`.
        resolved: The RESOLVED that freed the item and that a PROCESSING may follow.
        processed: The PROCESSED records of this revision, one for each application that processed it.
        skipped: The SKIPPED records of this revision, by application.
        tokens: The number of the data commit for each application, the same for every attempt at a revision.
        applications: Every application that has had a record other than SKIPPED here, except `*`. The NEW of
            another program only announces the item: it doesn't count.
        problem: Why the history is illegal; such an item is never processed.
    """

    item_id: str
    sequence: int = 0
    revision: int = 0
    state: State | None = None
    since: datetime | None = None
    new: Mark | None = None
    processing: Mark | None = None
    failed: Mark | None = None
    resolved: Mark | None = None
    processed: tuple[Mark, ...] = ()
    skipped: tuple[Mark, ...] = ()
    tokens: Mapping[tuple[str, str | None], int] = field(default_factory=dict)
    applications: tuple[Application, ...] = ()
    problem: str | None = None

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """The slice's fingerprint at its discovery, or as `resolve` adopted it; None if unknown."""
        return None if self.new is None else self.new.note.get("fingerprint") or None

    @property
    def may_be_late(self) -> bool:
        """Whether an operator let this revision be processed after later ones."""
        return self.new is not None and self.new.note.get("allow_late") is True

    @property
    def emptied_by(self) -> str:
        """The run in which a person emptied or removed the table that had this slice; else empty."""
        return "" if self.new is None else str(self.new.note.get("emptied_by") or "")

    @property
    def concerned(self) -> tuple[Application, ...]:
        """The item's applications, and others for which it is skipped.

        A skip for all instances of a name is not listed separately if the item has one of those instances.
        """
        if not self.skipped:
            return self.applications
        others = {
            mark.application.key: mark.application
            for mark in self.skipped
            if mark.application.name != ANYONE.name
            and not any(map(mark.application.skips, self.applications))
        }
        return (*self.applications, *others.values())

    def verdicts(self) -> Mapping[Application, Verdict]:
        """Return the verdict for each application that concerns the item; for `*` if there is none."""
        return {application: self.verdict(application) for application in self.concerned or (ANYONE,)}

    def verdict(self, application: Application) -> Verdict:
        """Return what `application` may do with the item; a lock or failure applies to every application."""
        if self.sequence == 0:
            return Verdict.UNKNOWN
        return decide_verdict(
            application,
            blocked=self.blocked,
            skipped=(mark.application for mark in self.skipped),
            processed=(mark.application for mark in self.processed),
        )

    @property
    def blocked(self) -> Verdict | None:
        """The verdict that the item has for every application: invalid, locked or failed; else None."""
        if self.problem is not None:
            return Verdict.INVALID
        if self.processing is not None:
            return Verdict.LOCKED
        return None if self.failed is None else Verdict.FAILED

    @property
    def arrival(self) -> str:
        """The time of this revision's NEW as text that sorts; empty for an item that never had one."""
        return "" if self.new is None else format_instant(self.new.since)

    def is_skipped_for(self, application: Application) -> bool:
        """Return whether this revision is skipped for `application`."""
        return any(mark.application.skips(application) for mark in self.skipped)

    def is_processed_by(self, application: Application) -> bool:
        """Return whether `application` has processed this revision."""
        return self.processed_by(application) is not None

    def processed_by(self, application: Application) -> Mark | None:
        """Return the last mark of a record by which `application` has processed this revision, or None."""
        done = (mark for mark in reversed(self.processed) if mark.application.covers(application))
        return next(done, None)

    def holds_back(self, application: Application) -> bool:
        """Return whether later items must wait for this one on behalf of `application`.

        A failed late slice holds nothing back, and neither does an item that the application has processed.
        An invalid item, for which that cannot be known, holds back until it is skipped.
        """
        if self.problem is not None:
            return not self.is_skipped_for(application)
        if not self.verdict(application).is_blocking or self.is_processed_by(application):
            return False
        return self.failed is None or bool(self.failed.note.get("holds_back", True))

    def has(self, record_id: str, sequence: int | None = None) -> bool:
        """Return whether the item keeps a mark of that record, with that sequence if one is given.

        It keeps marks of the last record and of some others of this revision.
        """
        single = (self.new, self.processing, self.failed, self.resolved)
        marks = (mark for mark in (*single, *self.processed, *self.skipped) if mark is not None)
        return any(mark.record_id == record_id and sequence in (None, mark.sequence) for mark in marks)

    def after(self, record: Record) -> Item:
        """Return the item with `record` appended.

        Raises:
            IllegalTransition: The record may not follow; the message names the rule.
        """
        problem = _refusal(self, record)
        if problem is not None:
            raise IllegalTransition(
                f"{record.state} can't be added to {self.item_id}: {problem}",
                details={"item_id": self.item_id, "record_id": record.record_id, "problem": problem},
            )
        return replace(self, **self._seen(record), **_STEPS[record.state](self, record))

    def damaged(self, record: Record, problem: str) -> Item:
        """Return the item marked as invalid, because `record` is not allowed at its position."""
        return replace(self, **{**self._seen(record), "problem": self.problem or problem})

    def _seen(self, record: Record) -> dict[str, Any]:
        """Return the attributes that change with every record."""
        known = self.applications
        is_announced = record.state is State.NEW and record.is_foreign
        is_named = (
            record.application.name != ANYONE.name and record.state is not State.SKIPPED and not is_announced
        )
        if is_named and all(a.key != record.application.key for a in known):
            known = (*known, record.application)
        is_next = record.state is State.NEW or self.revision == 0
        return {
            "sequence": record.sequence,
            "revision": self.revision + 1 if is_next else self.revision,
            "state": record.state,
            "since": record.timestamp,
            "applications": known,
        }

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form of the item."""
        return {
            "itemId": self.item_id,
            "sequence": self.sequence,
            "revision": self.revision,
            "state": self.state,
            "since": format_instant(self.since) if self.since else None,
            **{name: _mark_json(getattr(self, name)) for name in _SINGLE_MARKS},
            "processed": [_mark_json(mark) for mark in self.processed],
            "skipped": [_mark_json(mark) for mark in self.skipped],
            "tokens": [[*key, number] for key, number in self.tokens.items()],
            "applications": [[a.agent.name, a.agent.version, a.instance_id] for a in self.applications],
            "problem": self.problem,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Item:
        """Return the item of a value that `as_json` returned."""
        return cls(
            item_id=document["itemId"],
            sequence=document["sequence"],
            revision=document["revision"],
            state=State(document["state"]) if document["state"] else None,
            since=parse_instant(document["since"]) if document["since"] else None,
            **{name: _mark_from_json(document[name]) for name in _SINGLE_MARKS},
            processed=tuple(_marks_from_json(document["processed"])),
            skipped=tuple(_marks_from_json(document["skipped"])),
            tokens={(name, instance): number for name, instance, number in document["tokens"]},
            applications=tuple(
                Application.named(name, instance, version=version)
                for name, version, instance in document["applications"]
            ),
            problem=document["problem"],
        )


def is_changed(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Return whether two fingerprints differ; imported and old ones may have fewer entries."""
    return any(recorded[key] != found[key] for key in recorded.keys() & found.keys())


def has_same_amounts(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Return whether two fingerprints have the same size and number of files: rows may be the same."""
    return all(recorded.get(key) == found.get(key) for key in ("size", "files"))


_SINGLE_MARKS = ("new", "processing", "failed", "resolved")


def _refusal(item: Item, record: Record) -> str | None:
    if record.item_id != item.item_id:
        return f"it belongs to {record.item_id}"
    if record.sequence != item.sequence + 1:
        return f"its sequence is {record.sequence}, the next one is {item.sequence + 1}"
    if item.problem is not None and not _may_follow_damage(record):
        return item.problem
    return _REFUSALS[record.state](item, record)


def _may_follow_damage(record: Record) -> bool:
    """Return whether a record may follow an illegal history: SKIPPED, or NEW with `mends` in its payload."""
    is_mending = record.state is State.NEW and record.content.get("mends") is True
    return is_mending or record.state is State.SKIPPED


def _refuse_new(item: Item, record: Record) -> str | None:
    if record.previous_record_id is not None:
        return "NEW follows no record"
    return None if item.problem is not None else _refuse_held(item)


def _refuse_processing(item: Item, record: Record) -> str | None:
    allowed = {None} | {mark.record_id for mark in (item.new, item.resolved) if mark is not None}
    if record.previous_record_id not in allowed:
        return "PROCESSING follows nothing, the NEW or the RESOLVED that freed the item"
    return _refuse_held(item)


def _refuse_outcome(item: Item, record: Record) -> str | None:
    if item.processing is None or record.previous_record_id != item.processing.record_id:
        return f"{record.state} follows the open PROCESSING"
    if record.run_id != item.processing.run_id:
        return f"{record.state} is of run {record.run_id}, its PROCESSING is of run {item.processing.run_id}"
    return None


def _refuse_resolved(item: Item, record: Record) -> str | None:
    open_records = {mark.record_id for mark in (item.processing, item.failed) if mark is not None}
    if record.previous_record_id not in open_records:
        return "RESOLVED follows an unresolved FAILED or an open PROCESSING"
    return None


def _refuse_nothing(_item: Item, _record: Record) -> str | None:
    return None


def _refuse_held(item: Item) -> str | None:
    if item.processing is not None:
        return f"the item is locked by {item.processing.application}"
    if item.failed is not None:
        return "the item has an unresolved failure"
    return None


def _step_new(_item: Item, record: Record) -> dict[str, Any]:
    return {
        "new": Mark.of(
            record, "fingerprint", "entity", "slice", "allow_late", "processing_time", "emptied_by"
        ),
        "processing": None,
        "failed": None,
        "resolved": None,
        "processed": (),
        "skipped": (),
        "tokens": {},
        "problem": None,
    }


def _step_processing(item: Item, record: Record) -> dict[str, Any]:
    token = record.content.get("token")
    tokens = {**item.tokens, record.application.key: token} if isinstance(token, int) else item.tokens
    return {"processing": Mark.of(record, "token", "trigger"), "resolved": None, "tokens": tokens}


def _step_processed(item: Item, record: Record) -> dict[str, Any]:
    return {"processing": None, "processed": (*item.processed, Mark.of(record, "quarantined", "trigger"))}


def _step_failed(_item: Item, record: Record) -> dict[str, Any]:
    return {"processing": None, "failed": Mark.of(record, "error", "holds_back", "declared", "trigger")}


def _step_resolved(item: Item, record: Record) -> dict[str, Any]:
    new = item.new
    if new is not None and "fingerprint" in record.content:
        new = replace(new, note={**new.note, "fingerprint": record.content["fingerprint"]})
    return {"new": new, "processing": None, "failed": None, "resolved": Mark.of(record)}


def _step_skipped(item: Item, record: Record) -> dict[str, Any]:
    return {"skipped": (*item.skipped, Mark.of(record))}


def _mark_json(mark: Mark | None) -> list[Any] | None:
    if mark is None:
        return None
    agent = mark.application.agent
    return [
        mark.record_id,
        [agent.name, agent.version, mark.application.instance_id],
        mark.run_id,
        format_instant(mark.since),
        mark.sequence,
        dict(mark.note),
    ]


def _mark_from_json(document: list[Any] | None) -> Mark | None:
    return None if document is None else next(_marks_from_json([document]))


def _marks_from_json(documents: Iterable[list[Any]]) -> Iterator[Mark]:
    for record_id, (name, version, instance), run_id, since, sequence, note in documents:
        application = Application.named(name, instance, version=version)
        yield Mark(record_id, application, run_id, parse_instant(since), sequence, note)


_REFUSALS = {
    State.NEW: _refuse_new,
    State.PROCESSING: _refuse_processing,
    State.PROCESSED: _refuse_outcome,
    State.FAILED: _refuse_outcome,
    State.RESOLVED: _refuse_resolved,
    State.SKIPPED: _refuse_nothing,
}

# The attributes that change with a record of each state, besides those that change with every record.
_STEPS = {
    State.NEW: _step_new,
    State.PROCESSING: _step_processing,
    State.PROCESSED: _step_processed,
    State.FAILED: _step_failed,
    State.RESOLVED: _step_resolved,
    State.SKIPPED: _step_skipped,
}
