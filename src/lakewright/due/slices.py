"""The steps of a silver table: the difference of the slices that it should hold and those that it holds.

A table should hold what it holds, but for what was skipped or corrected since, and after it the new slices
in their order. The table goes back to what both have in common, and the rest is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from operator import attrgetter
from typing import Any, TypeVar

from lakewright.due.facts import (
    Effect,
    Entity,
    Entry,
    Facts,
    Foreign,
    Record,
    RecordState,
    Slice,
    Subject,
    TimeSource,
    Unknown,
    Verb,
)
from lakewright.due.plan import Action, Choice, Code, Finding, Reason, State, Step, broken, choices_of
from lakewright.errors import ManifestCorrupt
from lakewright.spec.grants import Grant

LATE = (Verb.PLACE, Verb.END, Verb.SKIP)
CHANGED = (Verb.TAKE, Verb.KEEP)
"""What a person may decide about a late slice, and about one whose files have changed."""


_Each = TypeVar("_Each")


class Standing(Enum):
    """What becomes of a slice that its table lacks.

    It is late if the table holds a newer one. Those that wait follow one that is held, and is not late.
    """

    LATE = auto()
    DUE = auto()
    HELD = auto()
    WAITS = auto()


def line_up(
    slices: Iterable[_Each],
    key: Callable[[_Each], Any],
    newest: object | None,
    is_held: Callable[[_Each, bool], bool],
) -> Iterator[tuple[_Each, Standing]]:
    """Yield the slices that a table lacks in their order, each with what becomes of it in plans and in runs.

    Args:
        slices: The slices.
        key: Returns the place of a slice in the order.
        newest: The place of the newest slice that the table holds; None if it holds none.
        is_held: Returns whether a slice can't be applied now, given whether it is late; not asked of slices
            that wait.
    """
    is_stopped = False
    for each in sorted(slices, key=key):
        is_late = newest is not None and key(each) < newest
        if is_stopped:
            yield each, Standing.WAITS
        elif is_held(each, is_late):
            is_stopped = not is_late
            yield each, Standing.HELD
        else:
            yield each, Standing.LATE if is_late else Standing.DUE


def entity_plan(
    entity: Entity, facts: Facts, grants: frozenset[Grant]
) -> tuple[tuple[Step, ...], tuple[Finding, ...]]:
    """Return the steps that make a table as it should be, in order, and what was noticed."""
    planning = _Planning(entity, facts, grants)
    if entity.is_enabled:
        planning.run()
        planning.look_around()
    else:
        planning.note_disabled()
    return tuple(planning.steps), tuple(planning.findings)


@dataclass(slots=True)
class _Planning:
    """Collects the steps of one table.

    Attributes:
        steps: The steps so far.
        findings: What was noticed so far.
        wanted: What the table should hold.
        cause: Why it should hold something else than it does.
        decided: The choices that a person has of the slices that were decided about.
        left_out: The late slices that the declaration leaves out.
        replaced: Slices that wait, are gone, and would leave no rows.
        ended: The other choices about late slices that are applied after the others.
    """

    entity: Entity
    facts: Facts
    grants: frozenset[Grant]
    steps: list[Step] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    wanted: list[Entry] = field(default_factory=list)
    cause: Reason = field(default_factory=lambda: Reason(Code.NEW_SLICES))
    decided: list[Choice] = field(default_factory=list)
    left_out: list[Slice] = field(default_factory=list)
    replaced: list[Slice] = field(default_factory=list)
    ended: list[Choice] = field(default_factory=list)

    def run(self) -> None:
        """Collect the steps."""
        entity = self.entity
        if self._is_locked() or self._is_withdrawn():
            return
        is_new = not entity.table.is_there and any(
            each.state is RecordState.PROCESSED for each in entity.records.values()
        )
        if is_new and not self._is_made_anew():
            return
        self._ask_about_damaged()
        self._record()
        self._keep_held()
        waiting = self._add_new()
        self._leave_out()
        if self._is_redeclared:
            self.cause = Reason(Code.REDECLARED, {"why": "; ".join(self.entity.table.outdated)})
        self._apply()
        self._wait(waiting)

    def look_around(self) -> None:
        """Collect what lies in bronze, in quarantine and in the manifest, and is no slice to be applied."""
        entity = self.entity
        if entity.incomplete:
            reason = Reason(Code.INCOMPLETE, {"slices": list(entity.incomplete)})
            self._add(Action.HOLD, "", reason, kind="incomplete", state=State.WAITS)
        if entity.no_files:
            self._note(Code.NO_FILES, place=entity.no_files)
        if entity.vanished:
            self._note(Code.VANISHED, slices=list(entity.vanished))
        for name, why in entity.unreadable.items():
            self._note(Code.UNREADABLE, slice=name, why=why)
        for place, number in entity.elsewhere.items():
            self._note(Code.ELSEWHERE, place=place, slices=number)
        if entity.aside:
            rows, slices = sum(entity.aside.values()), list(entity.aside)
            self._note(Code.BAD_ROWS, rows=rows, slices=slices, folder=entity.quarantine)

    def note_disabled(self) -> None:
        """Collect the slices that nothing processes, as the entity is disabled."""
        records, held = self.entity.records, {each.name for each in self.entity.table.slices}
        done = (RecordState.PROCESSED, RecordState.SKIPPED)
        left = [
            name
            for name in self.entity.bronze
            if name not in held and not (name in records and records[name].state in done)
        ]
        if left:
            self._note(Code.DISABLED, slices=left)

    def _note(self, code: Code, **params: object) -> None:
        self.findings.append(Finding(Reason(code, params), self._subject()))

    def _subject(self, part: str = "") -> Subject:
        return Subject(self.entity.name, part)

    def _add(self, action: Action, part: str, reason: Reason, *, kind: str = "", **rest: object) -> Step:
        """Add a step; a kind distinguishes it from other ones of the same action and subject."""
        name = " ".join(filter(None, (action, self.entity.name, part or kind)))
        step = Step(name, action, self._subject(part), reason)
        step = replace(step, **rest)  # type: ignore[arg-type]
        self.steps.append(step)
        return step

    def _choices(self, part: str, basis: str, verbs: Iterable[Verb], about: Code) -> tuple[Choice, ...]:
        return choices_of(self._subject(part), basis, verbs, about)

    def _is_withdrawn(self) -> bool:
        """Return whether a person emptied the table, and does not want it again; if so, note that."""
        basis = self.entity.emptied_by
        if not basis or self.facts.decided(self._subject(), basis) is Verb.AGAIN:
            return False
        reason = Reason(Code.WITHDRAWN)
        choices = self._choices("", basis, (Verb.AGAIN,), reason.code)
        self.findings.append(Finding(reason, self._subject(), choices))
        return True

    def _is_made_anew(self) -> bool:
        """Return whether a table that is gone is to be made anew; else add the step that asks."""
        basis = self.entity.table.id
        verb = self.facts.decided(self._subject(), basis)
        if verb is not Verb.NEW:
            code = Code.TABLE_OLDER if self.entity.table.is_older else Code.TABLE_GONE
            choices = self._choices("", basis, (Verb.NEW, Verb.WAIT), code)
            reason = Reason(code, {"table": basis})
            if verb is Verb.WAIT:
                self.findings.append(Finding(reason, self._subject(), choices[:1]))
            else:
                self._add(Action.HOLD, "", reason, state=State.NEEDS_DECISION, choices=choices)
        return verb is Verb.NEW

    def _ask_about_damaged(self) -> None:
        """Add the steps of slices whose records contradict each other."""
        for name, record in self.entity.records.items():
            if record.state is RecordState.DAMAGED:
                reason = broken(Unknown(record.why, ManifestCorrupt.code, record.remedy))
                self._add(Action.HOLD, name, reason, state=State.BLOCKED)

    def _record(self) -> None:
        """Add the step that records what the table holds and the manifest lacks."""
        records = self.entity.records
        held = (
            each
            for each in self.entity.table.slices
            if not self._is_recorded(records.get(each.name), each) and not self._is_skipped(each)
        )
        unrecorded = [*held, *self.entity.unrecorded]
        if unrecorded:
            reason = Reason(Code.HELD_UNRECORDED, {"slices": [each.name for each in unrecorded]})
            self._add(Action.RECORD, "", reason, slices=tuple(unrecorded))

    def _leave_out(self) -> None:
        """Add the steps that record which slices leave no rows: late ones, and those that are replaced."""
        if self.left_out:
            slices = tuple(self.left_out)
            reason = Reason(Code.LATE_SKIPPED, {"slices": [each.name for each in slices]})
            self._add(Action.RECORD, "", reason, kind="late", slices=slices)
        if self.replaced:
            self._add(
                Action.RECORD, "", Reason(Code.SUPERSEDED), kind="replaced", slices=tuple(self.replaced)
            )

    def _is_recorded(self, record: Record | None, held: Slice) -> bool:
        """Return whether the manifest says that the table holds a slice, or that applying it again failed."""
        if record is None:
            return False
        if record.state is RecordState.PROCESSED:
            return record.content == held.content
        if record.state is not RecordState.FAILED:
            return record.state is RecordState.DAMAGED
        now = self.entity.bronze.get(held.name, held)
        is_kept = self.facts.decided(self._subject(held.name), now.content) in (Verb.KEEP, Verb.SKIP)
        return record.content == held.content or (record.content == now.content and not is_kept)

    def _is_skipped(self, slice_: Slice) -> bool:
        record = self.entity.records.get(slice_.name)
        verb = self.facts.decided(self._subject(slice_.name), slice_.content)
        return verb is Verb.SKIP or (
            verb in (None, Verb.KEEP) and record is not None and record.state is RecordState.SKIPPED
        )

    def _keep_held(self) -> None:
        """Take over what the table holds, but for what is skipped, dropped or taken anew."""
        for entry in self.entity.table.held:
            if isinstance(entry, Foreign):
                self._keep_foreign(entry)
            elif self._is_skipped(entry):
                self.cause = Reason(Code.OTHER_ORDER, {"skipped": entry.name})
            else:
                self.wanted.append(self._now(entry))

    def _keep_foreign(self, entry: Foreign) -> None:
        part, basis = f"version {entry.version}", str(entry.version)
        verb = self.facts.decided(self._subject(part), basis)
        if verb is Verb.DROP:
            self.cause = Reason(Code.FOREIGN_ROWS, {"version": entry.version})
            return
        self.wanted.append(entry)
        if verb is None:
            reason = Reason(Code.FOREIGN_ROWS, {"version": entry.version})
            choices = self._choices(part, basis, (Verb.KEEP, Verb.DROP), reason.code)
            self.findings.append(Finding(reason, self._subject(part), choices))

    def _now(self, held: Slice) -> Slice:
        """Return a slice that the table holds with the content that it should hold of it."""
        now = self.entity.bronze.get(held.name)
        if now is None or now == held:
            return held
        reason = Reason(Code.CHANGED_SLICE, {"slice": held.name})
        choices = self._choices(held.name, now.content, CHANGED, reason.code)
        verb = self.facts.decided(self._subject(held.name), now.content) or self.entity.changed
        if verb is Verb.TAKE and not self._has_failed(now, Verb.KEEP):
            self.cause = reason
            self.decided += choices[1:]
            return now
        if verb is None:
            self._add(Action.HOLD, held.name, reason, state=State.NEEDS_DECISION, choices=choices)
        return held

    def _candidates(self) -> Iterator[Slice]:
        """Yield the slices that the table lacks and should hold."""
        entity, kept = self.entity, {each.name for each in self._kept()}
        gone = (
            Slice(name, record.content, record.place)
            for name, record in entity.records.items()
            if record.state is not RecordState.SKIPPED and name not in entity.bronze
        )
        for each in (*entity.bronze.values(), *gone):
            if each.name in kept:
                continue
            if self._is_replaced(each):
                self.replaced.append(each)
            elif self._is_skipped(each):
                self._note_corrected(each)
            else:
                yield each

    def _is_replaced(self, slice_: Slice) -> bool:
        """Return whether a slice that waits and is gone would leave no rows, as a later one replaces them."""
        record = self.entity.records.get(slice_.name)
        if self.entity.effect is not Effect.LAST or record is None or record.state is not RecordState.WAITING:
            return False
        there = (each for each in self.entity.bronze.values() if not self._is_skipped(each))
        is_gone = slice_.name not in self.entity.bronze
        return is_gone and any(each.key > slice_.key for each in (*self._kept(), *there))

    def _note_corrected(self, slice_: Slice) -> None:
        """Add the finding that a slice which was skipped has other files since."""
        record = self.entity.records.get(slice_.name)
        if record is None or record.state is not RecordState.SKIPPED or record.content == slice_.content:
            return
        subject = self._subject(slice_.name)
        if self.entity.changed is not Verb.KEEP and self.facts.decided(subject, slice_.content) is None:
            reason = Reason(Code.SKIPPED_CHANGED, {"slice": slice_.name})
            choices = self._choices(slice_.name, slice_.content, CHANGED, reason.code)
            self.findings.append(Finding(reason, subject, choices))

    def _kept(self) -> list[Slice]:
        return [each for each in self.wanted if isinstance(each, Slice)]

    def _add_new(self) -> list[Slice]:
        """Add the slices that the table lacks; return those that wait for one of them."""
        newest = max((each.key for each in self._kept()), default=None)
        waiting = []
        for each, standing in line_up(self._candidates(), attrgetter("key"), newest, self._is_held):
            if standing is Standing.LATE:
                self._add_late(each)
            elif standing is Standing.DUE:
                self.wanted.append(each)
            elif standing is Standing.WAITS and not self._is_gone(each):
                waiting.append(each)
        return waiting

    def _is_held(self, slice_: Slice, is_late: bool) -> bool:
        """Return whether a slice can't be applied now, and add the step that says why."""
        return (
            self._is_damaged(slice_.name)
            or self._is_locked(slice_.name)
            or self._has_failed(slice_)
            or self._is_gone(slice_)
            # Whether an unclaimed late slice is held depends on what is decided about it.
            or (not is_late and self._is_unclaimed(slice_))
        )

    def _is_damaged(self, name: str) -> bool:
        record = self.entity.records.get(name)
        return record is not None and record.state is RecordState.DAMAGED

    def _is_gone(self, slice_: Slice) -> bool:
        """Return whether a slice that is to be processed is gone from bronze, and add the step that asks."""
        record = self.entity.records.get(slice_.name)
        if slice_.name in self.entity.bronze or record is None or record.state is RecordState.PROCESSED:
            return False
        reason = Reason(Code.SLICE_GONE, {"slice": slice_.name})
        choices = self._choices(slice_.name, slice_.content, (Verb.SKIP,), reason.code)
        self._add(Action.HOLD, slice_.name, reason, state=State.BLOCKED, choices=choices)
        return True

    def _is_locked(self, part: str = "") -> bool:
        """Return whether another run has the table or a slice, and add the step of its lock.

        The lock of a run that has ended is released, once a person has decided so if only a person may.
        """
        subject = self._subject(part)
        lock = self.facts.locks.get(subject)
        if lock is None:
            return False
        if lock.is_dead:
            reason = Reason(Code.DEAD_LOCK, {"holder": lock.holder})
            if not lock.is_kept or self.facts.decided(subject, lock.holder) is Verb.RETRY:
                self._add(Action.RELEASE, part, reason)
                return False
            choices = self._choices(part, lock.holder, (Verb.RETRY,), reason.code)
            self._add(Action.HOLD, part, reason, state=State.NEEDS_DECISION, choices=choices)
            return True
        reason = Reason(Code.LOCKED, {"holder": lock.holder})
        self._add(Action.HOLD, part, reason, state=State.WAITS)
        return True

    def _has_failed(self, slice_: Slice, without: Verb = Verb.SKIP) -> bool:
        """Return whether a slice has failed as it is, and add the step that asks what to do.

        Args:
            slice_: The slice.
            without: The decision to go on without it.
        """
        now = (RecordState.FAILED, slice_.content, self.entity.digest)
        known = (records.get(slice_.name) for records in (self.entity.records, self.entity.unfit))
        failures = (each for each in known if each and (each.state, each.content, each.digest) == now)
        record = next(failures, None)
        if record is None or record.permitted_by in self.grants:
            return False
        # A late slice may have been decided about before it failed: only a decision to retry counts here.
        subject, basis = self._subject(slice_.name), f"failed {slice_.content} {record.attempt}"
        if self.facts.decided(subject, basis) is Verb.RETRY:
            return False
        params = {"slice": slice_.name, "why": record.why, "remedy": record.remedy}
        reason = Reason(Code.FAILED_SLICE, params)
        choices = self._choices(slice_.name, basis, (Verb.RETRY,), reason.code)
        choices += self._choices(slice_.name, slice_.content, (without,), reason.code)
        needs = _unless_permitted(record.permitted_by, State.NEEDS_DECISION)
        self._add(Action.HOLD, slice_.name, reason, choices=choices, **needs)
        return True

    def _is_unclaimed(self, slice_: Slice, choices: Sequence[Choice] = ()) -> bool:
        """Return whether it is unknown which run takes a slice; if so, add the step that says so."""
        parameters = self.entity.unclaimed.get(slice_.name)
        if parameters is None:
            return False
        reason = Reason(Code.UNCLAIMED, {"slice": slice_.name, "parameters": list(parameters)})
        self._add(Action.HOLD, slice_.name, reason, state=State.BLOCKED, choices=tuple(choices))
        return True

    def _add_late(self, slice_: Slice) -> None:
        reason = Reason(Code.LATE_SLICE, {"slice": slice_.name})
        choices = self._choices(slice_.name, slice_.content, LATE, reason.code)
        verb = self.facts.decided(choices[0].decision.subject, slice_.content)
        # A skipped slice that is taken after all is taken in its place.
        verb = Verb.PLACE if verb is Verb.TAKE else verb if verb in LATE else None
        if self.entity.effect is Effect.LAST:
            verb = verb or Verb.PLACE
        elif self.entity.effect is Effect.ANY_ORDER:
            verb = verb or Verb.END
        is_decided = verb is not None
        verb = verb or self.entity.late
        if verb is None:
            self._add(Action.HOLD, slice_.name, reason, state=State.NEEDS_DECISION, choices=choices)
        elif verb is Verb.PLACE:
            self.cause = reason
            self.decided += choices[1:]
            self.wanted.insert(_place(self.wanted, slice_), slice_)
        elif verb is Verb.SKIP:
            self.left_out += [] if is_decided else [slice_]
        elif not self._is_unclaimed(slice_, choices):
            self.ended += [each for each in choices if each.verb is not Verb.END]
            self.wanted.append(slice_)

    def _apply(self) -> None:
        """Add the step that makes the table hold what it should."""
        table, wanted = self.entity.table, self.wanted
        if list(table.held) == wanted and not self._is_redeclared:
            return
        base = 0 if self._is_redeclared else _common(table.held, wanted)
        rest = [each for each in wanted[base:] if isinstance(each, Slice)]
        if self.entity.effect is Effect.LAST:
            self._apply_last(base, rest)
        elif base == len(table.held):
            self._forward(rest)
        else:
            self._replay(base, rest, rest)

    @property
    def _is_redeclared(self) -> bool:
        return bool(self.entity.table.held) and self.entity.table.digest != self.entity.digest

    def _apply_last(self, base: int, rest: Sequence[Slice]) -> None:
        """Add the step of a table that its last slice makes alone; the others are only recorded."""
        held = self.entity.table.held
        if _tail(held) == _tail(self.wanted) and not self._is_redeclared:
            lacking = tuple(each for each in rest if each not in held)
            if lacking:
                reason = Reason(Code.SUPERSEDED)
                self._add(Action.RECORD, "", reason, kind="superseded", slices=lacking)
            return
        last = [each for each in _tail(self.wanted) if isinstance(each, Slice) and each in rest]
        self._replay(base, rest, last)

    def _forward(self, rest: Sequence[Slice]) -> None:
        """Add the step that applies slices at the end as far as they can be, and what holds the rest."""
        refused = {
            name: why for name, why in self.entity.refused.items() if why.permitted_by not in self.grants
        }
        stop = next((number for number, each in enumerate(rest) if each.name in refused), len(rest))
        end = next((number for number, each in enumerate(rest[:stop]) if self._gone([each])), stop)
        times = self.entity.times
        undated = [
            each.name
            for each in rest[:end]
            if each.name in times and times[each.name].source is TimeSource.UNDATED
        ]
        if undated and end > 1 and self.entity.has_versions:
            self._note(Code.UNDATED, slices=undated)
        if end and self.entity.taken_over:
            self._note(Code.TAKEN_OVER, what="; ".join(self.entity.taken_over))
        if end:
            self._step(Action.FORWARD, len(self.entity.table.held), rest[:end], ())
        if end < stop:
            self._blocked(rest[end:])
        elif stop < len(rest):
            why = refused[rest[stop].name]
            needs, choices = _unless_permitted(why.permitted_by, State.BLOCKED), tuple(self.ended)
            left = tuple(rest[stop:])
            self._add(Action.HOLD, "", broken(why), kind="time", slices=left, choices=choices, **needs)

    def _replay(self, base: int, rest: Sequence[Slice], read: Sequence[Slice]) -> None:
        """Add the step that goes back to a base, and applies slices, of which some are read."""
        if self._gone(read):
            self._blocked(read)
            return
        is_at_end = base == len(self.entity.table.held)  # then a run of a job takes them
        held_up = [
            each for each in read if self._has_failed(each) or (is_at_end and self._is_unclaimed(each))
        ]
        if not held_up:
            lost = [each for each in self.wanted[base:] if isinstance(each, Foreign)]
            self._step(Action.FORWARD if is_at_end else Action.REPLAY, base, rest, lost)

    def _step(self, action: Action, base: int, rest: Sequence[Slice], lost: Sequence[Foreign]) -> None:
        needs = set()
        size, entity = sum(each.size for each in rest), self.entity
        is_costly = len(rest) > entity.most_replayed or size > entity.most_replayed_bytes
        if action is Action.REPLAY and is_costly:
            needs.add(Grant.REPLAY)
        if lost:
            needs.add(Grant.FOREIGN)
        lacking = frozenset(needs) - self.grants
        before = tuple(step.id for step in self.steps if step.action in (Action.RELEASE, Action.RECORD))
        state = State.NEEDS_CONSENT if lacking else State.READY
        again = {each.name for each in rest}
        removed = (each for each in self.entity.table.held[base:] if isinstance(each, Slice))
        self._add(
            action,
            "",
            self.cause,
            slices=tuple(rest),
            times={name: time for name, time in self.entity.times.items() if name in again},
            base=base,
            removes=tuple(each.name for each in removed if each.name not in again),
            needs=lacking,
            state=state,
            after=before,
            choices=tuple(self.decided) if action is Action.REPLAY else (),
        )

    def _gone(self, slices: Iterable[Slice]) -> list[Slice]:
        """Return the slices whose files are not there, or are others by now."""
        return [each for each in slices if self.entity.bronze.get(each.name) != each]

    def _blocked(self, rest: Sequence[Slice]) -> None:
        gone = self._gone(rest)
        skips = (self._choices(each.name, each.content, (Verb.SKIP,), Code.FILES_GONE) for each in gone)
        choices = (*self.decided, *(choice for each in skips for choice in each))
        self._add(
            Action.HOLD,
            "",
            Reason(Code.FILES_GONE, {"slices": [each.name for each in gone], "why": self.cause.code}),
            kind="files",
            state=State.BLOCKED,
            choices=tuple(choices),
        )

    def _wait(self, waiting: Sequence[Slice]) -> None:
        """Add the step of the slices that wait for a failed or a locked one."""
        if waiting:
            holds = tuple(step.id for step in self.steps if step.action is Action.HOLD)
            reason = Reason(Code.FAILED_BEFORE, {"slices": [each.name for each in waiting]})
            slices = tuple(waiting)
            self._add(Action.HOLD, "", reason, kind="next", state=State.WAITS, after=holds, slices=slices)


def _unless_permitted(permit: Grant | None, otherwise: State) -> dict[str, Any]:
    """Return the state of a step that an error stands in the way of, and the grant with which it is ready."""
    needs = frozenset(filter(None, (permit,)))
    return {"state": State.NEEDS_CONSENT if needs else otherwise, "needs": needs}


def _place(entries: Sequence[Entry], slice_: Slice) -> int:
    """Return where a slice belongs by its name."""
    later = (
        number for number, each in enumerate(entries) if isinstance(each, Slice) and each.key > slice_.key
    )
    return next(later, len(entries))


def _tail(entries: Sequence[Entry]) -> list[Entry]:
    """Return the last slice, and what other writers changed after it."""
    slices = [number for number, each in enumerate(entries) if isinstance(each, Slice)]
    return list(entries[slices[-1] :]) if slices else list(entries)


def _common(held: Sequence[Entry], wanted: Sequence[Entry]) -> int:
    """Return how many entries both begin with."""
    pairs = zip(held, wanted, strict=False)
    return next(
        (number for number, (one, other) in enumerate(pairs) if one != other), min(len(held), len(wanted))
    )
