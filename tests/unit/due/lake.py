"""A lake without Spark: bronze, silver, gold and a manifest as plain values, with what may happen to them.

It takes the steps of a plan as simply as they can be taken, and knows nothing of how plans are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from lakewright.due.facts import (
    Build,
    Check,
    Decision,
    Effect,
    Entity,
    Entry,
    Facts,
    Foreign,
    Lock,
    Output,
    Record,
    RecordState,
    Slice,
    Subject,
    Table,
    Verb,
)
from lakewright.due.plan import Action, Code, Step
from lakewright.spec.grants import Grant


class Killed(Exception):
    """The process that took a step was killed."""


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def permit(slice_: Slice) -> Grant | None:
    """Return the grant without which a slice is not applied for the first time; None if it needs none."""
    return Grant.DELETES if slice_.content.endswith("many") else None


@dataclass
class Silver:
    """An entity, its slices and its table."""

    name: str
    effect: Effect
    late: Verb | None
    changed: Verb | None
    budget: int
    digest: str = "d0"
    bronze: dict[str, str] = field(default_factory=dict)
    archive: dict[str, str] = field(default_factory=dict)
    log: list[Entry] = field(default_factory=list)
    made_as: str | None = None
    is_there: bool = False
    id: int = 0
    records: dict[str, Record] = field(default_factory=dict)
    unfit: dict[str, Record] = field(default_factory=dict)
    unclaimed: tuple[str, ...] = ()
    emptied_by: str = ""

    @property
    def mark(self) -> str | None:
        """What readers see: a table with other rows has another mark."""
        if not self.is_there:
            return None
        log = self.log
        if self.effect is Effect.LAST:
            last = max((n for n, each in enumerate(log) if isinstance(each, Slice)), default=0)
            log = log[last:]
        return digest(self.name, self.made_as, tuple(log))

    def fails(self, slice_: Slice, grants: frozenset[Grant]) -> bool:
        """Return whether a slice can't be applied under what is declared, or with these grants."""
        return (
            slice_.content.endswith("bad")
            or (slice_.content.endswith("odd") and int(self.digest[1:]) % 2 == 1)
            or (permit(slice_) not in {None, *grants} and not self._was_applied(slice_))
        )

    def _was_applied(self, slice_: Slice) -> bool:
        record = self.records.get(slice_.name)
        if record is None or record.state is not RecordState.PROCESSED:
            return slice_ in self.log
        return slice_ in self.log or record.content == slice_.content

    def _is_back(self, name: str, record: Record) -> bool:
        """Return whether a slice waits and is there: then it is as one that nobody has recorded."""
        return record.state is RecordState.WAITING and name in self.bronze

    def facts(self) -> Entity:
        table = Table(
            tuple(self.log) if self.is_there else (),
            self.made_as if self.log and self.is_there else None,
            self.is_there,
            str(self.id),
        )
        return Entity(
            self.name,
            self.digest,
            self.effect,
            {name: Slice(name, content) for name, content in self.bronze.items()},
            table,
            {name: each for name, each in self.records.items() if not self._is_back(name, each)},
            self.late,
            self.changed,
            self.budget,
            dict.fromkeys(self.unclaimed, ("day",)),
            unfit=dict(self.unfit),
            emptied_by="" if table.held else self.emptied_by,
        )


@dataclass
class Gold:
    """An instance of a target."""

    subject: Subject
    inputs: tuple[str, ...]
    slices: dict[str, frozenset[str]] = field(default_factory=dict)
    definition: str = "v0"
    is_append: bool = False
    is_checked: bool = False
    only_if_empty: bool = False
    is_withdrawn: bool = False
    rows: str | None = None
    build: Build | None = None
    verdict: tuple[bool, str] | None = None


@dataclass
class FakeLake:
    """The lake, with all that was decided, and the grants that were used."""

    silver: dict[str, Silver]
    gold: dict[Subject, Gold]
    decisions: list[Decision] = field(default_factory=list)
    locks: dict[Subject, Lock] = field(default_factory=dict)
    taken: list[Step] = field(default_factory=list)

    def observe(self) -> Facts:
        entities = tuple(each.facts() for each in self.silver.values())
        outputs = tuple(self._output(each) for each in self.gold.values())
        checks = tuple(self._check(each) for each in self.gold.values() if each.is_checked)
        return Facts(entities, outputs, tuple(self.decisions), dict(self.locks), checks=checks)

    def _check(self, gold: Gold) -> Check:
        is_good, rows = gold.verdict or (None, "")
        return Check(gold.subject, is_good, {"it": rows}, {"it": gold.rows})

    def _output(self, gold: Gold) -> Output:
        return Output(
            gold.subject,
            gold.definition,
            self.marks(gold),
            {place: own for place, own in gold.slices.items() if not self._is_last_alone(place)},
            gold.rows,
            gold.build,
            is_append=gold.is_append,
            only_if_empty=gold.only_if_empty,
            is_withdrawn=gold.is_withdrawn,
            instance={"day": gold.subject.part} if gold.subject.part else {},
        )

    def _is_last_alone(self, place: str) -> bool:
        """Return whether a table has the rows of one slice only, so that any slice concerns all readers."""
        return self.silver[place].effect is Effect.LAST

    def marks(self, gold: Gold) -> Mapping[str, str | None]:
        return {place: self.mark(place, gold.slices.get(place)) for place in gold.inputs}

    def mark(self, place: str, slices: frozenset[str] | None = None) -> str | None:
        if place not in self.silver:
            rows = [each.rows for each in self.gold.values() if each.subject.name == place]
            return digest(*rows) if any(rows) else None
        silver = self.silver[place]
        if slices is None or silver.mark is None or self._is_last_alone(place):
            return silver.mark
        own = tuple(e for e in silver.log if isinstance(e, Slice) and e.name in slices)
        return digest(place, silver.made_as if own else None, own)

    def built(self, gold: Gold) -> str:
        """What the rows of an instance are if it is built now."""
        return digest(gold.definition, sorted(self.marks(gold).items()))

    def is_bad(self, mark: str | None) -> bool:
        """Return whether a check fails."""
        return mark is not None and int(mark, 16) % 5 == 0

    def take(self, step: Step, chance: Random, grants: frozenset[Grant], *, may_be_killed: bool) -> bool:
        """Take a step; return whether it succeeded.

        Raises:
            Killed: The process was killed: before, after or amid it.
        """
        is_killed = may_be_killed and chance.random() < 0.2
        when = chance.choice(["before", "amid", "after"]) if is_killed else None
        if is_killed and chance.random() < 0.5:
            self.locks[step.subject] = Lock("killed", is_dead=True)
        if when == "before":
            raise Killed
        self.taken.append(step)
        if step.action is Action.RELEASE:
            lock = self.locks.pop(step.subject)
            is_decided = Decision(step.subject, Verb.RETRY, lock.holder) in self.decisions
            assert lock.is_dead
            assert is_decided or not lock.is_kept
            if is_killed:
                raise Killed
            return True
        done = (
            self._take_silver(self.silver[step.subject.name], step, grants, is_cut=when == "amid")
            if step.subject.name in self.silver
            else self._take_gold(self.gold[step.subject], step, is_cut=when == "amid")
        )
        if is_killed:
            raise Killed
        return done

    def _take_silver(self, silver: Silver, step: Step, grants: frozenset[Grant], *, is_cut: bool) -> bool:
        if step.action is Action.RECORD:
            if step.reason.code is Code.LATE_SKIPPED:
                assert silver.late is Verb.SKIP
                silver.records |= {e.name: Record(RecordState.SKIPPED, e.content) for e in step.slices}
                return True
            for each in step.slices:
                if each not in silver.log:
                    assert silver.effect is Effect.LAST
                    if each.name not in silver.bronze:
                        silver.records[each.name] = Record(RecordState.SKIPPED, each.content)
                        continue
                    self._supersede(silver, each)
                silver.records[each.name] = Record(RecordState.PROCESSED, each.content)
            return True
        assert step.action in (Action.FORWARD, Action.REPLAY)
        base = step.base
        lost = [each for each in silver.log[base:] if isinstance(each, Foreign)]
        dropped = {d.subject.part for d in self.decisions if d.verb is Verb.DROP}
        assert Grant.FOREIGN in grants or all(f"version {each.version}" in dropped for each in lost)
        if step.action is Action.REPLAY:
            assert len(step.slices) <= silver.budget or Grant.REPLAY in grants
        else:
            assert base == len(silver.log)
        return self._apply(silver, step, base, grants, is_cut=is_cut)

    def _apply(
        self, silver: Silver, step: Step, base: int, grants: frozenset[Grant], *, is_cut: bool
    ) -> bool:
        kept, rest = silver.log[:base], list(step.slices)
        read = rest[-1:] if silver.effect is Effect.LAST else rest
        held = {each.name for each in silver.log[:base] if isinstance(each, Slice)}
        failed = None
        for number, each in enumerate(read):
            assert silver.bronze.get(each.name) == each.content, "a slice is read that is not there"
            if silver.fails(each, grants):
                failed = each
                rest = rest[:number] if step.action is Action.FORWARD and len(read) == len(rest) else []
                break
        assert not held & {each.name for each in rest}
        if failed is None or step.action is Action.FORWARD:
            if rest or step.action is Action.REPLAY:
                silver.log, silver.made_as, silver.is_there = [*kept, *rest], silver.digest, True
                assert not silver.emptied_by or self._is_wanted_again(silver)
                silver.emptied_by = ""
            if not is_cut:
                for each in rest:
                    silver.records[each.name] = Record(RecordState.PROCESSED, each.content)
                    silver.unfit.pop(each.name, None)
        if failed is not None and not is_cut:
            records = silver.records if step.action is Action.FORWARD else silver.unfit
            is_permitted = not failed.content.endswith(("bad", "odd"))
            records[failed.name] = Record(
                RecordState.FAILED,
                failed.content,
                silver.digest,
                permitted_by=permit(failed) if is_permitted else None,
            )
        return failed is None

    def _is_wanted_again(self, silver: Silver) -> bool:
        return Decision(Subject(silver.name), Verb.AGAIN, silver.emptied_by) in self.decisions

    def _supersede(self, silver: Silver, slice_: Slice) -> None:
        """Note a slice that a later one has replaced: the log shows it in its place."""
        log = [e for e in silver.log if not (isinstance(e, Slice) and e.name == slice_.name)]
        at = next((n for n, e in enumerate(log) if isinstance(e, Slice) and e.name > slice_.name), len(log))
        mark = silver.mark
        silver.log = [*log[:at], slice_, *log[at:]]
        assert silver.mark == mark, "rows of a slice that is only recorded are seen"

    def _take_gold(self, gold: Gold, step: Step, *, is_cut: bool) -> bool:
        if step.action is Action.CHECK:
            assert gold.rows is not None
            gold.verdict = (not self.is_bad(gold.rows), gold.rows)
            return gold.verdict[0]
        assert step.action is Action.BUILD
        marks = self.marks(gold)
        assert None not in marks.values(), "an input does not exist"
        known = {place: mark for place, mark in marks.items() if mark is not None}
        gold.build, gold.is_withdrawn = Build(gold.definition, known), False
        if is_cut:
            return True
        gold.rows = self.built(gold)
        gold.build = replace(gold.build, output=gold.rows)
        return True
