"""A small real lake of one entity, with what is built from it, to which things may happen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from tests.plain.session import sessions_of
from tests.sessions import no_session
from tests.silver import rows_of
from tests.unit.run.bench import Listening

from lakewright.app import App
from lakewright.due.plan import Code, Plan, State
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.spark.session import Sessions
from lakewright.spec.grants import Grant
from lakewright.usecases.due.decide import decide
from lakewright.usecases.due.take import Applied, apply_plan, plan_of_project
from lakewright.usecases.run_job import run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: list[dict[str, Any]] = [
    {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]},
    {"name": "age", "datatype": "int"},
]


@dataclass
class SmallProject:
    """A project of one entity, `people`, whose slices are CSV files.

    Attributes:
        spark: The session of its runs, or one that stands in for it.
        gold: Further definitions by section: targets are added to those of the job `daily`.
    """

    folder: Path
    spark: SparkSession
    settings: Mapping[str, Any] = field(default_factory=dict)
    strategy: str = "merge"
    by_day: bool = False
    takes_all: bool = False
    columns: list[dict[str, Any]] = field(default_factory=lambda: list(COLUMNS))
    gold: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.write()

    def write(self) -> None:
        """Write the declaration."""
        entity = {
            "id": "1",
            "connection": "files",
            "processtype": self.strategy,
            "columns": self.columns,
            "settings": {"format": "csv", **self.settings},
        }
        target: dict[str, Any] = {"kind": "entity", "entity": "people"}
        job: dict[str, Any] = {"targets": ["people"]}
        if self.by_day:
            target |= {} if self.takes_all else {"slices": "${day}*"}
            job["parameters"] = [{"name": "day", "type": "string"}]
        own = self.gold.get("jobs", {})
        inside = [
            name
            for name in self.gold.get("targets", {})
            if all(name not in j["targets"] for j in own.values())
        ]
        job["targets"] = ["people", *inside]
        model: dict[str, Any] = {
            "connections": {"files": {"settings": {"bronze_path": "people", "silver_path": "people"}}},
            "entities": {"people": entity},
            **self.gold,
            "targets": {"people": target, **self.gold.get("targets", {})},
            "jobs": {"daily": job, **own},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "project.yml").write_text(
            'name: due\nmodules: [model.yml]\nlake: {root_folder: "${project.basedir}/lake"}\n'
        )
        (self.folder / "model.yml").write_text(json.dumps(model))

    @property
    def slices(self) -> Path:
        return self.folder / "lake" / "bronze" / "people"

    @property
    def table(self) -> Path:
        return self.folder / "lake" / "silver" / "people"

    def put(self, name: str, rows: Mapping[int, int | str]) -> None:
        self.slices.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{key},{value}\n" for key, value in rows.items())
        (self.slices / f"{name}.csv").write_text(f"id,age\n{lines}")

    @property
    def sessions(self) -> Sessions:
        """Where its runs get their sessions from."""
        return sessions_of(self.spark)

    def app(self, sessions: Sessions = no_session) -> App:
        """Return the project; Spark may not be started unless it is given."""
        environ = {"XDG_STATE_HOME": str(self.folder / "state")}
        return App.open(self.folder, environ=environ, sessions=sessions)

    def plan(self, *grants: Grant) -> Plan:
        return plan_of_project(self.app(), grants=frozenset(grants))

    def apply(self, *grants: Grant, sessions: Sessions | None = None) -> Applied:
        app, listening = self.app(sessions or self.sessions), Listening()

        def run(request: JobRequest) -> RunResult:
            return run_job(app, request, listener=listening, interruption=listening)

        return apply_plan(app, run, grants=frozenset(grants), author="tests")

    def done(self, *grants: Grant) -> Applied:
        """Apply, and check that each step is done and that a second time finds nothing, without Spark."""
        applied = self.apply(*grants)
        assert applied.failed == (), applied.failed
        assert self.apply(*grants, sessions=no_session).taken == ()
        return applied

    def job(self, name: str, *arguments: str, phase: Phase = Phase.BUILD, **more: Any) -> RunResult:
        """Run a job as a person does."""
        app, listening = self.app(self.sessions), Listening()
        request = JobRequest(name, phase, arguments, **more)
        return run_job(app, request, listener=listening, interruption=listening)

    def decide(self, subject: str, choice: str) -> None:
        decide(self.app(), subject, choice, author="tests", reason="a test")

    def built(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table below `gold`, sorted."""
        found = rows_of(self.folder / "lake" / "gold" / name)
        return sorted(tuple(row.values()) for row in found)

    def rows(self) -> dict[int, int]:
        return {row["id"]: row["age"] for row in rows_of(self.table)}


def delete(project: SmallProject, key: int) -> None:
    """Delete a row of the table as another program does."""
    DeltaTable(project.table).delete(f"id = {key}")


def told(plan: Plan) -> list[tuple[Code, State]]:
    return [(step.reason.code, step.state) for step in plan.steps]
