"""A lake in S3 on a standalone cluster: a master and two workers, one of which is killed.

Source: the rules of storage and clusters, "2. Clusters".
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.acceptance.command import BIN, Lakewright
from tests.stores.s3 import Store, running_store
from tests.stores.standalone import Standalone, running_standalone

FIRST = {n: f"airport {n}" for n in range(200)}
SECOND = {**{n: f"AIRPORT {n}" for n in range(0, 200, 10)}, **{n: f"airport {n}" for n in range(200, 220)}}

COLUMNS = [
    {"name": "id", "datatype": "integer", "fieldroles": ["businesskey"]},
    {"name": "name", "datatype": "string"},
]
SECONDS = 900


def entity(number: int, strategy: str) -> dict[str, Any]:
    settings = {"format": "csv"}
    return {
        "id": number,
        "connection": "c",
        "processtype": strategy,
        "columns": COLUMNS,
        "settings": settings,
    }


MODEL = {
    "connections": {"c": {"settings": {"bronze_path": "${destination}", "silver_path": "${destination}"}}},
    "entities": {"airports": entity(1, "merge"), "history": entity(2, "historic")},
    "targets": {
        "airports": {"kind": "entity", "entity": "airports"},
        "history": {"kind": "entity", "entity": "history", "after": "airports"},
    },
    "jobs": {"daily": {"targets": ["airports", "history"]}},
}


def write_project(folder: Path, store: Store, bucket: str, master: str) -> Lakewright:
    folder.mkdir()
    (folder / "model.yml").write_text(json.dumps(MODEL))
    sections = {
        "name": "air",
        "modules": ["model.yml"],
        "lake": {"root_folder": f"s3a://{bucket}/lake"},
        "storage": store.section,
        "cluster": {"master": master},
        "manifest": {"kind": "delta", "location": f"s3://{bucket}/manifest"},
    }
    (folder / "project.yml").write_text(json.dumps(sections))
    return Lakewright(folder)


def run_and_kill(air: Lakewright, cluster: Standalone, environ: dict[str, str]) -> tuple[int, str]:
    """Run the job, and kill a worker as soon as the first slice is done; return the code and all output."""
    options = ("spark.driver.host=127.0.0.1", "spark.executor.memory=512m", "spark.ui.enabled=false")
    command = [str(BIN / "lakewright"), "job", "daily", "build", "-v", "--no-serve"]
    command += [word for option in options for word in ("--conf", option)]
    said = []
    with subprocess.Popen(
        command,
        cwd=air.folder,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                said.append(line)
                if "d1.csv" in line and cluster.workers[0].poll() is None:
                    cluster.kill_worker(0)
                    cluster.workers[0].wait()
            return process.wait(SECONDS), "".join(said)
        finally:
            process.kill()


@pytest.mark.timeout(SECONDS)
@pytest.mark.nightly
def test_slices_on_a_cluster_survive_the_loss_of_a_worker(tmp_path: Path) -> None:
    with running_store() as store, running_standalone(tmp_path / "cluster") as cluster:
        bucket = store.new_bucket()
        air = write_project(tmp_path / "project", store, bucket, cluster.master)
        for place, rows in {"airports/d1": FIRST, "airports/d2": SECOND, "history/d1": FIRST}.items():
            text = "id,name\n" + "".join(f"{key},{value}\n" for key, value in rows.items())
            store.put_at(bucket, f"lake/bronze/{place}.csv", text)
        environ = {"SPARK_LOCAL_IP": "127.0.0.1", "XDG_STATE_HOME": str(tmp_path / "state")}

        code, said = run_and_kill(air, cluster, environ)

        assert code == 0, said
        assert cluster.workers[0].returncode is not None, said
        assert f"Spark works on {cluster.master}: " in said
        # The executors saw neither the project nor each other's folders.
        assert {place.parts[-3] for place in cluster.executor_folders()} == {"worker-0", "worker-1"}
        options = store.options
        current = DeltaTable(f"s3://{bucket}/lake/silver/airports", storage_options=options)
        assert rows_of(current) == {**FIRST, **SECOND}
        history = DeltaTable(f"s3://{bucket}/lake/silver/history", storage_options=options)
        assert rows_of(history, '"dlf_IsCurrent"') == FIRST
        left = store.client.list_objects_v2(Bucket=bucket, Prefix="lake/.lakewright").get("Contents", [])
        assert left == []
        verdicts = [row["verdict"] for row in air.json("manifest", "ls")]
        assert verdicts == ["processed"] * 3


def query(table: DeltaTable, sql: str) -> list[dict[str, Any]]:
    found: Any = pa.table(QueryBuilder().register("t", table).execute(sql).read_all())
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def rows_of(table: DeltaTable, condition: str = "true") -> dict[int, str]:
    return {row["id"]: row["name"] for row in query(table, f"SELECT id, name FROM t WHERE {condition}")}
