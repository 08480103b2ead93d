"""Slices on YARN: the MiniYARNCluster of Hadoop's own tests, with Spark's driver in client mode.

Source: the rules of storage and clusters, "2. Clusters".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.acceptance.command import Lakewright
from tests.stores.s3 import running_store
from tests.stores.yarn import running_yarn

SECONDS = 600

MODEL = """
connections:
  air: {settings: {bronze_path: "${destination}", silver_path: "${destination}"}}
entities:
  airports:
    id: 1
    connection: air
    processtype: merge
    columns: [{name: id, datatype: integer, fieldroles: [businesskey]}, {name: name, datatype: string}]
    settings: {format: csv}
"""


def write_project(folder: Path, sections: Mapping[str, object]) -> Lakewright:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        # The node is this machine: it need not be sent 400 MB of jars.
        "spark.yarn.jars": f"local:{Path(spec.origin).parent}/jars/*",
        "spark.yarn.stagingDir": str(folder.parent / "staging"),
    }
    folder.mkdir()
    (folder / "model.yml").write_text(f"config: {json.dumps(conf)}\n{MODEL}")
    declared = {"name": "air", "modules": ["model.yml"], "cluster": {"master": "yarn"}, **sections}
    (folder / "project.yml").write_text(json.dumps(declared))
    return Lakewright(folder)


@pytest.mark.timeout(SECONDS)
@pytest.mark.nightly
def test_a_slice_is_processed_by_an_executor_in_a_container_of_yarn(tmp_path: Path) -> None:
    with running_store() as store, running_yarn(tmp_path / "yarn") as yarn:
        bucket = store.new_bucket()
        sections = {
            "lake": {"root_folder": f"s3a://{bucket}/lake"},
            "storage": store.section,
            "manifest": {"kind": "delta", "location": f"s3://{bucket}/manifest"},
        }
        air = write_project(tmp_path / "project", sections)
        store.put_at(bucket, "lake/bronze/airports/d1.csv", "id,name\n1,a\n2,b\n")
        environ = {"SPARK_LOCAL_IP": "127.0.0.1", "XDG_STATE_HOME": str(tmp_path / "state")}

        # Without its configuration nobody knows where YARN is; nothing is claimed.
        refused = air.run("process", "airports", "--no-serve", **environ)
        assert "HADOOP_CONF_DIR" in refused.err, refused.all

        done = air.run("process", "airports", "--no-serve", "-v", HADOOP_CONF_DIR=str(yarn.conf), **environ)
        assert done.code == 0, done.all + yarn.log()
        assert "Spark works on yarn: " in done.all
        assert "d1.csv merge 2 records: 2 inserted" in done.out
        # One container is the application's master, the other one the executor.
        assert len(yarn.containers()) >= 2
        options = store.options
        table = DeltaTable(f"s3://{bucket}/lake/silver/airports", storage_options=options)
        found = QueryBuilder().register("t", table).execute("SELECT id, name FROM t").read_all()
        rows = pa.table(found).to_pylist()
        assert sorted((row["id"], row["name"]) for row in rows) == [(1, "a"), (2, "b")]
        assert [row["verdict"] for row in air.json("manifest", "ls")] == ["processed"]
