"""The facts of a project: bronze, logs and manifest, each read once, without Spark.

What can't be known without Spark, or can't be read, is unknown, with the reason.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakewright.due.facts import (
    Check,
    Decision,
    Entity,
    Entry,
    Facts,
    Foreign,
    Kind,
    Lock,
    Output,
    Record,
    RecordState,
    Slice,
    SliceTime,
    Subject,
    Table,
    TimeSource,
    Undeclared,
    Unknown,
    Verb,
)
from lakewright.due.plan import Code
from lakewright.due.slices import entity_plan
from lakewright.errors import Fault, LakewrightError
from lakewright.errors.fault import remedy_of
from lakewright.lake.commit import Commit
from lakewright.lake.files import names_in
from lakewright.lake.history import mark_of
from lakewright.lake.observation import missing_files, observe_without_spark
from lakewright.lake.paths import local_path
from lakewright.lake.storage_errors import lost_files_error
from lakewright.manifest.item import Item
from lakewright.manifest.journal import CALM
from lakewright.manifest.lock import failure_permit, failure_remedy, failure_words, invalid_error
from lakewright.manifest.payload import PERMITTED_BY
from lakewright.manifest.record import Application
from lakewright.manifest.settings import is_taken_over
from lakewright.manifest.store import Query, Write
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import (
    application_of,
    applications_before,
    awaited_of,
    entity_of,
    is_of_lakewright,
)
from lakewright.slices.chain import OPEN, AppliedSlice, SliceChain, counter_of, processed_items
from lakewright.slices.deviations import AS_DECLARED, effect_of, lost_folder_fault, slice_fact
from lakewright.slices.discovery import (
    item_id,
    list_bronze,
    natural_key,
    settle_of,
    slice_name,
    without_unsettled,
)
from lakewright.slices.log_recovery import unrecorded_items
from lakewright.slices.lost_table import find_loss, former_name_error, moved_lake_error, table_refusal
from lakewright.slices.other_runs import run_taking, strategy_of_jobs
from lakewright.slices.past_versions import lacks_past, planned_past
from lakewright.spec.grants import Grant
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.adoption import adopted_columns, is_adoptable
from lakewright.strategies.outdated import outdated_rows
from lakewright.targets.lease import table_resource
from lakewright.transform.system_columns import SystemColumns
from lakewright.usecases.due.decisions import read_decisions
from lakewright.usecases.due.observe_outputs import OutputObserver
from lakewright.usecases.due.settled import Settled, SettledDocuments, digest_of
from lakewright.usecases.process_slices import PlannedTimes
from lakewright.usecases.rewinding import UnfitSlices

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.lake.delta_log import TableState
    from lakewright.manifest.standing import Standing
    from lakewright.manifest.store import Put
    from lakewright.slices.discovery import Listing
    from lakewright.slices.discovery import Slice as BronzeSlice
    from lakewright.spec.models.entity import Entity as Declared


_HOLD = "hold"
"""What the settings `late_slices` and `changed_slices` are if they decide nothing; else they are verbs."""

_OTHERWISE = "otherwise"
_OF_CALM = (Code.VANISHED, Code.BAD_ROWS)
"""What may be noticed of an entity that is calm."""

_NEEDS_SPARK = "only Spark can read the log of its table"


log = logging.getLogger(__name__)


def observe(app: App, names: Iterable[str] = ()) -> Facts:
    """Return the facts of all entities and targets, and of what else the manifest has, or of named ones only.

    Raises:
        SpecError: There is no such entity or target.
    """
    named = tuple(dict.fromkeys(names))
    targets = frozenset(name for name in named if _is_target(app, name))
    chosen = [app.project.entity(name) for name in named if name not in targets or _is_entity(app, name)]
    entities, locks, unknown = list[Entity](), dict[Subject, Lock](), dict[Subject, Unknown]()
    decisions, found, calm = list(read_decisions(app)), list[_Observed](), _CalmEntities(app, CALM)
    unfit = UnfitSlices(app)
    with app.lake.observing():
        for each in chosen if named else app.project.entities.values():
            observed = _Observed(app, each, calm, unfit)
            entity = observed.calm_facts or _entity(observed)
            if isinstance(entity, Unknown):
                unknown[Subject(each.called)] = entity
                continue
            entities.append(entity)
            if entity.is_enabled:
                found.append(observed)
            if entity.is_enabled and observed.calm_facts is None:
                locks |= observed.locks()
                decisions += observed.recorded_decisions()
        chains = {each.declared.called: each.chain for each in found}
        enabled = (each for each in entities if each.is_enabled)
        slices = {e.name: frozenset(_to_come(e.bronze, frozenset(e.table.slices))) for e in enabled}
        silver = Facts(tuple(entities), (), tuple(decisions), locks)
        moving = frozenset(each.name for each in entities if entity_plan(each, silver, frozenset(Grant))[0])
        outputs = OutputObserver(app, chains, slices, moving)
        built, checks, unrecorded = tuple[Output, ...](), tuple[Check, ...](), tuple[Subject, ...]()
        if targets or not named:
            built, unrecorded = outputs.outputs(targets), outputs.unrecorded(targets)
            checks = outputs.checks(targets)
    unknown |= {subject: Unknown(why) for subject, why in outputs.unknown.items()}
    facts = Facts(
        tuple(entities), built, tuple(decisions), locks, unknown, unrecorded=unrecorded, checks=checks
    )
    return facts if named else replace(facts, undeclared=_undeclared(app, calm), items=_items(app))


def settle(app: App) -> None:
    """Record which targets are settled and which entities calm; if it fails, plans look at everything."""
    try:
        with app.lake.observing():
            puts = [*_settling_entities(app), *OutputObserver(app).settling()]
        for outcome in app.store.write_many(Write(puts=(put,)) for put in puts):
            if isinstance(outcome, LakewrightError):
                log.debug("something has moved meanwhile: %s", outcome)
    except LakewrightError as error:
        log.debug("what is settled is not known: %s", error)


def _settling_entities(app: App) -> Iterator[Put]:
    """Yield the puts that record which entities are calm, of those that are not yet known to be."""
    calm, unfit = _CalmEntities(app, CALM), UnfitSlices(app)
    for declared in app.project.entities.values():
        found = _Observed(app, declared, calm, unfit)
        if found.calm_facts is not None or found.digest is None:
            continue
        entity = _entity(found)
        if isinstance(entity, Entity):
            steps, findings = entity_plan(entity, Facts(locks=found.locks()), frozenset())
            # The digest of an entity that puts nothing aside does not show what lies there from before.
            is_done = not steps and (found.puts_aside or not entity.aside)
            if is_done and all(each.reason.code in _OF_CALM for each in findings):
                known = Settled(found.digest, vanished=entity.vanished, aside=entity.aside)
                yield calm.put(declared.called, known)


def _is_target(app: App, name: str) -> bool:
    """Return whether a target that is no entity's has a name."""
    found = app.project.targets.get(name)
    return found is not None and found.kind != Kind.ENTITY


def _is_entity(app: App, name: str) -> bool:
    return any(name in (each.called, each.name) for each in app.project.entities.values())


def _to_come(bronze: Mapping[str, Slice], held: Collection[Slice]) -> list[str]:
    """Return the slices that may be processed next: all if one may be replayed, else the new ones."""
    new = [each for each in bronze.values() if each not in held]
    newest = max((each.key for each in held), default=None)
    may_replay = newest is not None and any(each.key <= newest for each in new)
    return [each.name for each in (bronze.values() if may_replay else new)]


def _entity(found: _Observed) -> Entity | Unknown:
    """Return the facts of an entity; what is wrong with a disabled one is no error."""
    try:
        found.chain.places  # noqa: B018  # parameters of a job may be part of them
    except LakewrightError as error:
        return Unknown(error.message)
    try:
        fault = found.fault
        if fault is None:
            return found.entity() or Unknown(_NEEDS_SPARK)
    except LakewrightError as error:
        fault = error.as_fault()
    return Unknown(fault.message, fault.code if found.declared.enabled else "", fault.remedy)


def _undeclared(app: App, known: _CalmEntities) -> tuple[Undeclared, ...]:
    """Return entities with slices that only these have processed; a faulty project may declare them."""
    if app.project.faults:
        return ()
    project = app.project.name
    declared = [application_of(project, each) for each in app.project.entities.values()]
    alone, others = Counter[Application](), Counter[Application]()
    for standing, number in known.standings.items():
        if not any(standing.has_processed(each) for each in declared):
            for application in standing.concerned:
                is_processed = standing.verdict(application) is Verdict.PROCESSED
                (alone if is_processed else others)[application] += number
    named = ((entity_of(project, each), each) for each in alone)
    names = {name for key, entity in app.project.entities.items() for name in (key, entity.identity)}
    return tuple(
        Undeclared(name, str(each), alone[each], others[each])
        for name, each in named
        if name is not None and name not in names
    )


def _items(app: App) -> dict[Subject, Lock | None]:
    """Return the items of programs that are no entities which failed, or which runs have left locked."""
    verdicts = frozenset({Verdict.FAILED, Verdict.LOCKED})
    prefixes = tuple(f"{item_id(places.bronze)}/" for _, places in app.placed_entities())
    found = dict[Subject, Lock | None]()
    for item in app.store.select(Query(verdicts=verdicts)):
        mark, lock = item.processing or item.failed, app.ledger.lock(item)
        if mark is None or is_of_lakewright(mark.application) or item.item_id.startswith(prefixes):
            continue
        if lock is None or lock.is_stale:
            held = None if lock is None else Lock(str(lock.holder), is_dead=True)
            found[Subject(str(mark.application), item.item_id, Kind.APPLICATION)] = held
    return found


class _CalmEntities(SettledDocuments):
    """The entities that were calm, with what the manifest has of all entities, which is read once."""

    @cached_property
    def standings(self) -> Mapping[Standing, int]:
        """How many items have each standing."""
        return self.app.store.standings()

    @cached_property
    def counts(self) -> Mapping[Application, list[tuple[str, int]]]:
        """How many items of each application have each standing."""
        counts: dict[Application, list[tuple[str, int]]] = {}
        for standing, number in self.standings.items():
            for application in standing.concerned:
                counts.setdefault(application, []).append((standing.text, number))
        return counts

    @cached_property
    def rewinding(self) -> frozenset[str]:
        """The keys of the tables that are rewound now."""
        return frozenset(self.app.ledger.rewinds())


@dataclass
class _Observed:
    """One entity as it is observed.

    Attributes:
        calm: The entities that were calm.
        unfit: The slices that a replay could not apply.
    """

    app: App
    declared: Declared
    calm: _CalmEntities
    unfit: UnfitSlices

    @cached_property
    def chain(self) -> SliceChain:
        return self.app.chain(self.declared)

    @cached_property
    def digest(self) -> str | None:
        """The digest of all from which follows which slices are due; None if it can't be calm."""
        try:
            return self._digest()
        except LakewrightError:  # observing it raises it
            return None

    def _digest(self) -> str | None:
        declared, chain, listing = self.declared, self.chain, self.listing
        is_whole = listing.exists and not listing.incomplete and not listing.unreadable
        state = observe_without_spark(chain.lake, chain.silver) if declared.enabled else None
        if not is_whole or state is None or state.version is None:
            return None
        if self._outdated(state):
            return None
        self._check_files(state.version)
        if counter_of(chain.silver) in self.calm.rewinding:
            return None
        mark = mark_of(chain.lake, table_resource(chain.silver))
        slices = [
            (each.path, [(file.name, file.size, file.modified) for file in each.files])
            for each in listing.slices
        ]
        counts = sorted(self.calm.counts.get(chain.application, ()))
        aside = sorted(self._quarantined or ()) if self.puts_aside else None
        number = chain.last_given_number
        return digest_of(str(chain.application), chain.bronze, mark, number, counts, slices, aside)

    @cached_property
    def calm_facts(self) -> Entity | None:
        """Its facts if nothing has moved since nothing was due; else None."""
        known = None if self.digest is None else self.calm.settled.get(self.declared.called)
        if known is None or known.digest != self.digest:
            return None
        return Entity(
            self.declared.called,
            AS_DECLARED,
            vanished=known.vanished,
            aside=known.aside,
            quarantine=self.chain.places.quarantine,
        )

    @cached_property
    def listing(self) -> Listing:
        listing = list_bronze(self.chain.folder, self.app.lake)
        return without_unsettled(listing, settle_of(self.app.project.config), self.app.clock())

    @cached_property
    def _present(self) -> dict[str, BronzeSlice]:
        return {each.name: each for each in self.listing.slices}

    @cached_property
    def bronze(self) -> dict[str, Slice]:
        """The slices in bronze, by name."""
        return {name: slice_fact(name, each.fingerprint, each) for name, each in self._present.items()}

    @cached_property
    def items(self) -> dict[str, Item]:
        """The items of slices in bronze, of open and of processed ones, by the names of the slices."""
        chain = self.chain
        found = chain.store.read([each.item_id for each in self.listing.slices])
        processed = {each.item_id: each for each in processed_items(chain.store, chain.application)}
        own = {each.item_id: each for each in chain.items(*OPEN)}
        every = {**found, **processed, **own}.values()
        known = {slice_name(item): item for item in every if item.sequence and chain.has_item(item)}
        return {**known, **self.undone}

    @cached_property
    def undone(self) -> dict[str, Item]:
        """The items of slices that the table's log shows as undone and the manifest does not, by name.

        They are as the manifest has them once that is recorded.
        """
        chain = self.chain
        if not self._lacks_commits:
            return {}
        open_ = {each.item_id: each for each in chain.items(*OPEN)}
        found = unrecorded_items(chain, (chain.in_bronze(self.listing.slices) | open_).values()).values()
        is_held = Verdict.PROCESSED
        return {slice_name(item): item for item in found if item.verdict(chain.application) is not is_held}

    @property
    def fault(self) -> Fault | None:
        """That the lake was moved, the entity renamed, or the folder of its slices is gone; else None.

        Raises:
            LakewrightError: Bronze, the table or the manifest can't be read.
        """
        chain, listing = self.chain, self.listing
        moved = moved_lake_error(chain, lambda: {each.name for each in listing.slices})
        if moved is None and chain.silver.location is not None:
            moved = former_name_error(chain)
        if moved is not None:
            return moved.as_fault()
        return lost_folder_fault(chain, listing)

    def entity(self) -> Entity | None:
        """Return its facts; None if only Spark can find them.

        Raises:
            LakewrightError: Bronze, the table or the manifest can't be read.
        """
        chain, declared = self.chain, self.declared
        state = observe_without_spark(chain.lake, chain.silver)
        if state is None:
            return None
        if state.version is not None:
            self._check_files(state.version)
        is_older = state.exists and find_loss(chain) is not None
        is_there = state.exists and not is_older
        held = tuple(self._held()) if is_there else ()
        outdated = self._outdated(state) if held else ()
        table = Table(
            held,
            (_OTHERWISE if outdated else AS_DECLARED) if held else None,
            is_there,
            # What distinguishes a table that is gone from the next one in its place: its last known commit.
            "" if is_there else f"after commit {chain.last_given_number}",
            is_older=is_older,
            outdated=outdated,
        )
        settings, records, in_table = declared.settings, self._records(), frozenset(table.slices)
        project, entity = self.app.project, declared.called
        runs = {name: run_taking(project, entity, name) for name in _to_come(self.bronze, in_table)}
        planned = PlannedTimes(self.app, declared, runs, self.items)
        present = {*self.bronze, *self.listing.incomplete, *self.listing.unreadable}
        processed = {name for name, each in records.items() if each.state is RecordState.PROCESSED}
        young = self.listing.unsettled - {each.name for each in table.slices}
        return Entity(
            declared.called,
            AS_DECLARED,
            effect_of(declared, self._strategy),
            {**self.bronze, **{name: slice_fact(name, None) for name in young}},
            table,
            records,
            None if settings.late_slices == _HOLD else Verb(settings.late_slices),
            None if settings.changed_slices == _HOLD else Verb(settings.changed_slices),
            most_replayed=self.app.project.apply.replay_budget.slices,
            most_replayed_bytes=self.app.project.apply.replay_budget.bytes,
            unclaimed={name: run.unknown for name, run in runs.items() if run is not None and run.unknown},
            unrecorded=tuple(self._slice(name, item.fingerprint) for name, item in self.undone.items()),
            refused=self._refused(in_table, planned),
            is_enabled=declared.enabled,
            incomplete=self.listing.incomplete,
            unreadable=self.listing.unreadable,
            vanished=tuple(sorted(processed - present)),
            times=self._times(in_table, planned),
            has_versions=self._strategy is Strategy.HISTORIC,
            no_files="" if present or settings.slices_from is None else chain.folder.pattern,
            elsewhere=self._elsewhere(),
            unfit=self._unfit(),
            aside=self._aside(),
            quarantine=chain.places.quarantine,
            emptied_by="" if held else self._emptied_by,
            taken_over=tuple(self._taken_over(state)),
        )

    def _taken_over(self, state: TableState) -> Iterator[str]:
        """Yield what the next slice takes over before it.

        Raises:
            MigrationError: The table has other columns than those that are to be adopted.
        """
        declared, lake = self.declared, self.app.project.lake
        if is_adoptable(declared, state):
            system = SystemColumns(lake.systemfield_prefix, declared.destination)
            yield from adopted_columns(declared, state, system).changes(system, state.rows)
        elif lacks_past(declared, self._strategy, state):
            yield planned_past(declared)

    @property
    def _emptied_by(self) -> str:
        """The run in which a person emptied the table last, of slices that are ready again; else empty."""
        ready = (
            each for each in self.items.values() if each.verdict(self.chain.application) is Verdict.READY
        )
        return max((each.emptied_by for each in ready), default="")

    def _check_files(self, version: int) -> None:
        """Raise the error of a table on this machine that lacks data files; nothing else looks for them."""
        gone = missing_files(self.chain.lake, self.chain.silver, version)
        if gone:
            place = str(self.chain.silver.location)
            raise lost_files_error(str(local_path(place) or place), gone)

    def _refused(self, held: Collection[Slice], planned: PlannedTimes) -> dict[str, Unknown]:
        """Return why runs would not process new slices, as declared times are wrong, by name.

        The next run takes all that follow the table. A late slice that it takes, too, is refused by itself.
        """
        newest = max((each.key for each in held), default=None)
        skipped = (Verdict.SKIPPED, Verdict.PROCESSED)
        done = {name for name, item in self.items.items() if item.verdict(self.chain.application) in skipped}
        new = sorted(
            (each for each in self.bronze.values() if each not in held and each.name not in done),
            key=lambda each: each.key,
        )
        timely = [each.name for each in new if newest is None or each.key > newest]
        before = (each.name for each in new[: len(new) - len(timely)])
        late = [(name,) for name in before if self._is_ended(name)]
        found = dict[str, Unknown]()
        for names in filter(None, (*late, timely)):
            if (refusal := planned.refusal(names)) is not None:
                left, error = refusal
                permit = _grant(error.details.get(PERMITTED_BY))
                refused = Unknown(error.message, error.code, error.remedy, permit)
                found |= dict.fromkeys(left, refused)
        return found

    def _is_ended(self, name: str) -> bool:
        """Return whether a slice, if it is late, is applied after the others."""
        return self._is_noted(name) or self.declared.settings.late_slices == "end"

    def _is_noted(self, name: str) -> bool:
        item = self.items.get(name)
        return item is not None and item.may_be_late

    def _times(self, held: Collection[Slice], planned: PlannedTimes) -> dict[str, SliceTime]:
        """Return the processing times of slices: those that the held ones had, and those of the next ones.

        One that a person wants to be processed once more gets the time of a new one.
        """
        zone = self.app.project.lake.zone
        other = {name for name, each in self.bronze.items() if each not in held}
        left_out = self._again | (other if self.declared.settings.time_column is not None else set())
        recorded = {
            name: SliceTime(TimeSource.RECORDED, at=each.at.astimezone(zone))
            for name, each in self._applied.items()
            if each.at is not None and name not in left_out
        }
        return {**planned.of(name for name in planned.runs if name not in recorded), **recorded}

    def _elsewhere(self) -> dict[str, int]:
        """Return how many of its open slices were recorded in other folders, which no run reads."""
        verdicts = frozenset({Verdict.READY, Verdict.FAILED})
        found = self.chain.store.select(Query(self.chain.application, verdicts))
        return Counter(item.item_id.rpartition("/")[0] for item in found if not self.chain.has_item(item))

    def _unfit(self) -> dict[str, Record]:
        """Return the slices that a replay could not apply; under another declaration they are tried again."""
        return {
            name: Record(
                RecordState.FAILED,
                self._slice(name, value["fingerprint"]).content,
                self._as_declared(value["declared"]),
                value["attempt"],
                why=value["error"]["message"],
                remedy=remedy_of(value["error"]),
                permitted_by=_grant(value["error"].get(PERMITTED_BY)),
            )
            for name, value in self.unfit.of(self.declared).items()
        }

    def _as_declared(self, digest: str | None) -> str:
        """Return whether what failed was declared as now; other applications record no declaration."""
        return AS_DECLARED if digest in (None, self.declared.declared_digest) else _OTHERWISE

    def _aside(self) -> dict[str, int]:
        """Return the numbers of bad rows that lie in quarantine, by the names of their slices.

        Where only Spark can list the folder, those count that were put there.
        """
        found = {name: rows for name, item in self.items.items() if (rows := self._bad_rows(item))}
        there = self._quarantined if found else None
        return {name: rows for name, rows in found.items() if there is None or name in there}

    @cached_property
    def _quarantined(self) -> frozenset[str] | None:
        """The names of what lies in quarantine; None where only Spark lists it."""
        return names_in(self.chain.places.quarantine, self.app.lake)

    @property
    def puts_aside(self) -> bool:
        """Whether bad rows of new slices are put into quarantine."""
        return self.declared.settings.on_bad_rows == "quarantine"

    def _bad_rows(self, item: Item) -> int:
        mark = item.processed_by(self.chain.application)
        return 0 if mark is None else int(mark.note.get("quarantined", 0))

    def _outdated(self, state: TableState) -> tuple[str, ...]:
        """Return why the rows of a table are not as the entity declares them now; nothing if they are."""
        refusal = table_refusal(state, self._strategy, self.declared)
        reasons = (each.why for each in outdated_rows(state, self.declared, self.chain.lake.settings))
        return (*(() if refusal is None else (refusal.message,)), *reasons)

    @property
    def _strategy(self) -> Strategy:
        """The strategy by which jobs process the entity; its own if they disagree."""
        return strategy_of_jobs(self.app.project, self.declared)

    def _slice(self, name: str, fingerprint: Mapping[str, Any] | None) -> Slice:
        """Return a slice of the table or the manifest; equal to that in bronze unless this has changed."""
        return slice_fact(name, fingerprint, self._present.get(name))

    def _held(self) -> Iterator[Entry]:
        """Yield what the table holds, oldest first; a slice in the place of its last processing."""
        for each in self.chain.history:
            if isinstance(each, Commit):
                yield Foreign(each.version)
            elif each.name not in self._again and each.name not in self.undone:
                yield self._slice(each.name, each.fingerprint or self._recorded_of_gone(each.name))

    @cached_property
    def _again(self) -> frozenset[str]:
        """The slices that a person wants to be processed once more."""
        return frozenset(slice_name(item) for item in self.items.values() if self._is_requeued(item))

    def _recorded_of_gone(self, name: str) -> Mapping[str, Any] | None:
        """Return the fingerprint that the manifest has of a slice which is gone; None for others."""
        item = None if name in self._present else self.items.get(name)
        return None if item is None else item.fingerprint

    def _is_requeued(self, item: Item) -> bool:
        """Return whether a person wants a slice to be processed once more."""
        return item.revision > 1 and item.verdict(self.chain.application) is Verdict.READY

    def _records(self) -> dict[str, Record]:
        return {name: record for name, item in self.items.items() if (record := self._record(name, item))}

    def _record(self, name: str, item: Item) -> Record | None:
        verdict = item.verdict(self.chain.application)
        if verdict is Verdict.PROCESSED:
            state = RecordState.PROCESSED
        elif verdict is Verdict.SKIPPED:
            state = RecordState.SKIPPED
        elif verdict is Verdict.INVALID:
            fault = invalid_error(item, f"{self.declared.called}/{name}").as_fault()
            place = natural_key(name)
            return Record(RecordState.DAMAGED, "", place=place, why=fault.message, remedy=fault.remedy)
        elif verdict is Verdict.FAILED and (item.failed is None or item.failed.note.get("holds_back", True)):
            state = RecordState.FAILED
        elif verdict is Verdict.READY and self._is_missing(name, item):
            state = RecordState.WAITING
        else:
            return None
        own = self._slice(name, self._recorded_content(name, item, state))
        if item.failed is None:
            return Record(state, own.content, AS_DECLARED, place=own.place)
        return Record(
            state,
            own.content,
            self._as_declared(item.failed.note.get("declared")),
            item.failed.record_id,
            own.place,
            failure_words(item) or "",
            failure_remedy(item),
            _grant(failure_permit(item)),
        )

    def _recorded_content(self, name: str, item: Item, state: RecordState) -> Mapping[str, Any] | None:
        """Return the fingerprint with which the manifest has a slice.

        If it knows all commits to the table, a processed slice is known as the table holds it, whatever
        content of it a person has accepted since.
        """
        held = self._applied.get(name) if state is RecordState.PROCESSED else None
        is_known = held is not None and bool(held.fingerprint) and not self._lacks_commits
        if held is not None and is_known:
            return held.fingerprint
        # Other applications record no fingerprint: what they failed is what is there, until it is resolved.
        is_of_others = state is RecordState.FAILED and item.fingerprint is None and name in self._present
        return self._present[name].fingerprint if is_of_others else item.fingerprint

    @cached_property
    def _applied(self) -> Mapping[str, AppliedSlice]:
        return {each.name: each for each in self.chain.order}

    @cached_property
    def _lacks_commits(self) -> bool:
        return self.chain.lacks_commits

    def _is_missing(self, name: str, item: Item) -> bool:
        """Return whether a slice that waits is gone; one that another program announced is yet to come."""
        is_there = name in self._present or name in {*self.listing.incomplete, *self.listing.unreadable}
        return not is_there and (item.revision > 1 or item.fingerprint is not None)

    def locks(self) -> dict[Subject, Lock]:
        """Return the locks of its slices, what they wait for, and the rewind of its table."""
        name, ledger = self.declared.called, self.app.ledger
        is_kept = not is_taken_over(self.app.project.manifest)
        found = {
            Subject(name, each): Lock(lock.holder, lock.is_stale, is_kept)
            for each, item in self.items.items()
            if (lock := ledger.lock(item)) is not None
        }
        # Those after it would make it late.
        found |= {Subject(name, each): Lock("the program that writes it") for each in self.listing.unsettled}
        for each in self.listing.slices:
            item = self.items.get(each.name) or Item(each.item_id)
            if item.failed is None and not self._is_done(item):  # one that failed asks what to do
                for awaited in awaited_of(item, applications_before(self.declared))[:1]:
                    found.setdefault(Subject(name, each.name), Lock(str(awaited)))
        rewind = self.chain.rewind
        if rewind is not None:
            found[Subject(name)] = Lock(rewind.words, not ledger.is_rewinding(rewind))
        return found

    def _is_done(self, item: Item) -> bool:
        return item.is_processed_by(self.chain.application)

    def recorded_decisions(self) -> Iterator[Decision]:
        """Yield what the manifest's own records decide: that a late slice is applied after later ones."""
        for name in self.items:
            if self._is_noted(name) and name in self.bronze:
                yield Decision(Subject(self.declared.called, name), Verb.END, self.bronze[name].content)


def _grant(name: str | None) -> Grant | None:
    """Return the grant that an error names; None if it names none, or one of another version."""
    return Grant(name) if name in tuple(Grant) else None
