"""A plan tells the truth of real tables: what it says would run runs, and asking changes no byte anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import Phase as Step
from hypothesis import strategies as st
from tests.unit.run.bench import Listening, would_run

from lakewright.app import App
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.plan.step import Plan
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.spark.connect import sessions_like
from lakewright.usecases.run_job import plan_job, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = ("day:start=2022-01-01", "day:end=2022-01-02")
FIELDS = {
    "kind": "inline",
    "fields": [{"name": "k", "type": "integer"}, {"name": "v", "type": "string", "nullable": True}],
}
POLICIES = ("ALWAYS", "IF_EMPTY", "IF_TAINTED", "IF_CHANGED", "SMART", "COMPAT")

Declared = dict[str, Any]


@st.composite
def models(draw: st.DrawFn) -> dict[str, Declared]:
    """Relations of some kinds, each written from constants or from one before, and an entity over slices."""
    relations: Declared = {}
    mappings: Declared = {
        "rows": {"kind": "values", "records": [["1", "a"], ["2", "b"]], "schema": FIELDS},
        "nothing": {"kind": "filter", "input": "rows", "condition": "k > 2"},
    }
    targets: Declared = {}
    for n in range(draw(st.integers(2, 3))):
        kind = draw(st.sampled_from(["delta", "parquet", "csv"]))
        is_by_day = draw(st.booleans())
        relations[f"r{n}"] = {
            **({"kind": "delta"} if kind == "delta" else {"kind": "file", "format": kind}),
            "location": f"lake/r{n}",
            "schema": FIELDS,
            "partitions": [{"name": "day", "type": "date"}] if is_by_day else [],
        }
        mappings[f"m{n}"] = {"kind": "relation", "relation": f"r{n}"}
        source = draw(st.sampled_from(["rows", "nothing", *(f"m{before}" for before in range(n))]))
        targets[f"t{n}"] = {
            "kind": "relation",
            "relation": f"r{n}",
            "mapping": source,
            "partition": {"day": "$day"} if is_by_day else {},
            "buildPolicy": draw(st.sampled_from(POLICIES)),
            "verifyPolicy": "EMPTY_AS_SUCCESS",
        }
    targets["customers"] = {"kind": "entity", "entity": "customers"}
    entity = {
        "id": "1",
        "connection": "source",
        "processtype": draw(st.sampled_from(["full", "merge", "historic"])),
        "columns": [{"name": "id", "fieldroles": ["businesskey"]}],
    }
    places = {"bronze_path": "${destination}", "silver_path": "${destination}"}
    return {
        "relations": relations,
        "mappings": mappings,
        "targets": targets,
        "connections": {"source": {"settings": places}},
        "entities": {"customers": entity},
        "jobs": {
            "daily": {
                "parameters": [{"name": "day", "type": "date"}],
                "targets": draw(st.permutations(list(targets))),
                "executions": draw(
                    st.sampled_from([[], [{"phase": "create", "cycle": "first", "targets": ".*"}]])
                ),
            }
        },
    }


PHASES = st.lists(
    st.sampled_from([Phase.CREATE, Phase.BUILD, Phase.VERIFY, Phase.TRUNCATE, Phase.DESTROY]),
    min_size=2,
    max_size=3,
)


class Lakeful:
    """A project in a folder, planned and run in the tests' session."""

    def __init__(self, folder: Path, model: Declared, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        (folder / "project.yml").write_text(
            'name: truth\nmodules: [model.yml]\nlake: {root_folder: "${project.basedir}/lake"}\n'
        )
        (folder / "model.yml").write_text(json.dumps(model))

    def slice(self, name: str) -> None:
        path = self.folder / "lake" / "bronze" / "customers" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame([{"id": "1", "name": name}]).to_parquet(path, index=False)

    def app(self) -> App:
        environ = {"XDG_STATE_HOME": str(self.folder / "state")}
        return App.open(self.folder, environ=environ, sessions=sessions_like(self.spark))

    def plan(self, phase: Phase, **options: Any) -> Plan:
        return plan_job(self.app(), JobRequest("daily", phase, DAYS, **options))

    def run(self, phase: Phase, **options: Any) -> RunResult:
        app, listening = self.app(), Listening()
        try:
            request = JobRequest("daily", phase, DAYS, **options)
            return run_job(app, request, listener=listening, interruption=listening)
        finally:
            app.store.close()

    def everything(self) -> dict[str, tuple[bytes, int]]:
        """Each file with its content and the time of its last change, and each folder."""
        return {
            str(path.relative_to(self.folder)): (
                path.read_bytes() if path.is_file() else b"",
                path.stat().st_mtime_ns,
            )
            for path in sorted(self.folder.rglob("*"))
        }


FEW = settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    phases=[Step.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@FEW
@given(models(), PHASES)
def test_what_a_plan_says_of_real_tables_is_what_runs(
    spark: SparkSession, model: Declared, phases: list[Phase]
) -> None:
    check(spark, model, phases)


@pytest.mark.nightly
@settings(FEW, max_examples=12)
@given(models(), PHASES)
def test_what_a_plan_says_of_more_tables_is_what_runs(
    spark: SparkSession, model: Declared, phases: list[Phase]
) -> None:
    check(spark, model, phases)


def check(spark: SparkSession, model: Declared, phases: list[Phase]) -> None:
    """Plan and run phases one after the other, the last one twice."""
    with TemporaryDirectory() as folder:
        lake = Lakeful(Path(folder), model, spark)
        lake.slice("2022-01-01")
        for phase in [*phases, phases[-1]]:
            before = lake.everything()

            plan = lake.plan(phase)

            assert lake.everything() == before
            result = lake.run(phase)
            assert [error for target in result.targets() if (error := target.error)] == []
            assert ran(result) == would_run(plan)


def ran(result: RunResult) -> list[tuple[str, str, str]]:
    return [
        (instance.parameters["day"], target.phase, target.name)
        for instance in result.instances
        for phase in instance.phases
        for target in phase.targets
        if target.status is not Status.SKIPPED
    ]
