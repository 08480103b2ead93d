"""Historic as a snapshot of dbt, in a process of its own, whose session has Lakewright's few partitions.

LAKEWRIGHT_DBT names the program, which needs an environment of its own:
`pip install dbt-core==1.10.23 dbt-spark==1.10.3 pyspark==4.2.0`. dbt starts Java itself, by JAVA_HOME.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.strategies.slices import KEY
from lakewright.spark.conf import driver_memory_gib, machine_memory
from lakewright.spark.jars import fetch_jars
from lakewright.spark.releases import delta_jars, installed_release

DBT = os.environ.get("LAKEWRIGHT_DBT")

_SNAPSHOT = f"""
{{% snapshot rows %}}
{{{{ config(
    target_schema='bench', unique_key='{KEY}', strategy='check', check_cols='all', file_format='delta'
) }}}}
select * from parquet.`{{{{ env_var('SLICE') }}}}`
{{% endsnapshot %}}
"""
_PROJECT = {
    "name": "bench",
    "version": "1.0",
    "profile": "bench",
    "snapshot-paths": ["snapshots"],
    "flags": {"send_anonymous_usage_stats": False},
}


def write_dbt_project(folder: Path) -> None:
    """Write a project with one snapshot, whose table and catalog are in the folder, too."""
    conf = {
        "spark.jars": ",".join(str(jar) for jar in fetch_jars(os.environ, delta_jars(installed_release()))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.defaultJavaOptions": f"-Dderby.system.home={folder}",
        "spark.driver.memory": f"{driver_memory_gib(machine_memory())}g",
        "spark.sql.shuffle.partitions": str(2 * len(os.sched_getaffinity(0))),
        "spark.databricks.delta.snapshotPartitions": "1",
        # dbt compares each column, or null: from this Spark did not derive all constraints in eleven minutes.
        "spark.sql.constraintPropagation.enabled": "false",
        "spark.ui.enabled": "false",
    }
    local = {"type": "spark", "method": "session", "host": "none", "schema": "bench"}
    outputs = {"local": {**local, "server_side_parameters": conf}}
    (folder / "snapshots").mkdir(parents=True)
    (folder / "snapshots" / "rows.sql").write_text(_SNAPSHOT)
    (folder / "dbt_project.yml").write_text(json.dumps(_PROJECT))
    (folder / "profiles.yml").write_text(json.dumps({"bench": {"target": "local", "outputs": outputs}}))


def snapshot_command(folder: Path, file: Path) -> list[str]:
    """Return the command that takes a slice into the snapshot."""
    places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    return ["env", f"SLICE={file}", str(DBT), "snapshot", *places]
