"""Looking into an entity's silver table for what is wrong with it, and putting it right.

Source: `processing-strategies.md`, "Version Lifecycle"; `processing-manifest.md`, "State".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.doctor.diagnosis import Finding, Patient, diagnose, has_rules
from lakewright.doctor.repair import Treatment, overwrite, treat
from lakewright.doctor.since import first_broken
from lakewright.errors import CommitConflict
from lakewright.lake.commit import Commit, Token, carrying_token, read_commits, strict_session
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.observation import last_commit_number, local_table_path, observe_table, read_table
from lakewright.manifest.journal import Run
from lakewright.manifest.store import Query
from lakewright.plan.resource import Resource
from lakewright.slices.application import application_of
from lakewright.slices.reconcile import Mismatch, foreign_commits, mismatches
from lakewright.spec.models.places import Address
from lakewright.targets.lease import hold_leases
from lakewright.transform.system import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.table_state import TableState
    from lakewright.manifest.journal import Journal
    from lakewright.spec.models.entity import Entity
    from lakewright.targets.context import Context

__all__ = ["Diagnosis", "Repair", "examine", "plan_repair", "repair"]

PHASE = "REPAIR"
"""Under which a repair stands in the history of runs."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong with an entity's table.

    Attributes:
        version: Of the table that was looked at; None where there is none, or its rows have no rules.
        findings: Rules that don't hold.
        since: Rule to the commit from which on it doesn't; None where that can't be told.
        mismatches: Slices of which manifest and table don't say the same.
        strangers: Commits that changed rows and that Lakewright didn't make.
    """

    version: int | None
    findings: tuple[Finding, ...] = ()
    since: Mapping[str, Commit | None] = field(default_factory=dict)
    mismatches: tuple[Mismatch, ...] = ()
    strangers: tuple[Commit, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; that others wrote too isn't by itself."""
        return not self.findings and not self.mismatches

    def as_json(self) -> dict[str, Any]:
        """Return the diagnosis as `doctor -o json` prints it."""
        return {
            "version": self.version,
            "findings": [
                {**finding.as_json(), "since": _commit_json(self.since.get(finding.rule))}
                for finding in self.findings
            ],
            "mismatches": [each.as_json() for each in self.mismatches],
            "written_by_others": [_commit_json(commit) for commit in self.strangers],
        }


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair that can be made.

    Attributes:
        patient: The table's rows, of the version that was looked at.
    """

    session: SparkSession
    address: Address
    state: TableState
    patient: Patient
    treatment: Treatment


def examine(context: Context, entity: Entity) -> Diagnosis:
    """Return what is wrong with an entity's table; nothing is written."""
    lake = context.workspace.lake
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address)
    if not state.exists:
        return Diagnosis(None)
    log = read_commits(lake, address)
    application = application_of(context.workspace.project.name, entity)
    items = context.ledger.store.select(Query(application=application))
    last = last_commit_number(lake, address, str(application))
    found = tuple(mismatches(items, application, log, last))
    system = _system(context, entity)
    if not has_rules(entity, state.names, system):
        return Diagnosis(None, mismatches=found, strangers=foreign_commits(log))
    session = strict_session(lake)
    patient = _patient(context, entity, session, state)
    findings = diagnose(patient)
    since = _since(session, patient, address, findings, log) if findings else {}
    return Diagnosis(state.version, findings, since, found, foreign_commits(log))


def _since(
    session: SparkSession,
    patient: Patient,
    address: Address,
    findings: tuple[Finding, ...],
    log: tuple[Commit, ...],
) -> dict[str, Commit | None]:
    """The commit since which each rule hasn't held, by looking at earlier versions."""
    from pyspark.errors import PySparkException

    broken = {finding.rule for finding in findings}
    rules = [rule for rule in patient.rules() if rule.name in broken]

    def count_at(version: int) -> Mapping[str, int] | None:
        try:
            frame = read_table(session, address, version)
            if not has_rules(patient.entity, frame.columns, patient.system):
                return {}
            earlier = Patient(frame, patient.entity, patient.system, patient.properties)
            return {finding.rule: finding.count for finding in diagnose(earlier, rules)}
        except PySparkException:
            return None

    by_version = {commit.version: commit for commit in log}
    found = first_broken([rule.name for rule in rules], sorted(by_version), count_at)
    return {rule: None if version is None else by_version[version] for rule, version in found.items()}


def plan_repair(context: Context, entity: Entity) -> Repair | None:
    """Return what would put an entity's table right, or None where nothing is wrong; nothing is written."""
    lake = context.workspace.lake
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address)
    if not state.exists or not has_rules(entity, state.names, _system(context, entity)):
        return None
    session = strict_session(lake)
    patient = _patient(context, entity, session, state)
    treatment = treat(patient, allow_data_loss=context.options.permissions.allow_data_loss)
    if not (treatment.changed or treatment.removed or treatment.doubled or treatment.left):
        return None
    return Repair(session, address, state, patient, treatment)


def repair(
    context: Context, entity: Entity, planned: Repair, journal: Journal, *, author: str, reason: str
) -> int | None:
    """Return the version of the table after a planned repair, made in one commit and kept in the history.

    Raises:
        LeaseHeld: A run writes to the table.
        CommitConflict: The table has changed since the repair was planned; nothing was written.
    """
    treatment = planned.treatment
    facts = {"author": author, "reason": reason, "changed": treatment.changed, "removed": treatment.removed}
    run = journal.start_run(
        Run(
            run_id=context.run_id,
            project=context.workspace.project.name,
            job=f"doctor {entity.name}",
            phase=PHASE,
            parameters={},
            started=context.clock(),
            holder=context.leases.holder,
            facts=facts,
        )
    )
    status = "FAILED"
    try:
        with hold_leases(context, frozenset({_resource(planned.address)})):
            version = _commit(context, entity, planned, facts)
        status = "SUCCESS"
        return version
    finally:
        journal.finish_run(run, status, finished=context.clock())


def _commit(context: Context, entity: Entity, planned: Repair, facts: Mapping[str, Any]) -> int | None:
    lake, address = context.workspace.lake, planned.address
    application = application_of(context.workspace.project.name, entity)
    content = {"run": context.run_id, "repair": dict(facts)}
    place = local_table_path(lake, address)
    local = address if place is None else Address(location=str(place))
    with commit_lock(local, str(context.leases.holder)):
        now = observe_table(lake, address)
        if now.version != planned.state.version:
            raise CommitConflict(
                f"{address} went from version {planned.state.version} to {now.version} since the repair was "
                "planned",
                remedy="Look again with `lakewright doctor`, then repair.",
            )
        token = Token(f"{application}/repair", (now.version or 0) + 1, content)
        with carrying_token(planned.session, token):
            overwrite(planned.session, address, planned.patient, planned.treatment)
    return observe_table(lake, address).version


def _patient(context: Context, entity: Entity, session: SparkSession, state: TableState) -> Patient:
    address = entity.places(context.workspace.lake.settings).silver
    frame = read_table(session, address, state.version)
    return Patient(frame, entity, _system(context, entity), state.properties)


def _system(context: Context, entity: Entity) -> SystemColumns:
    return SystemColumns(context.workspace.lake.settings.systemfield_prefix, entity.destination)


def _resource(address: Address) -> Resource:
    if address.location is not None:
        return Resource.file(address.location)
    return Resource.table(str(address.name))


def _commit_json(commit: Commit | None) -> dict[str, Any] | None:
    if commit is None:
        return None
    item = commit.content.get("item")
    return {
        "version": commit.version,
        "at": commit.at.isoformat() if commit.at else None,
        "operation": commit.operation,
        "item": item,
        "run": commit.content.get("run"),
        "is_own": "app" in commit.content,
    }
