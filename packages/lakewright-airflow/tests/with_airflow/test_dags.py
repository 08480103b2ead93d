"""The DAGs of the page are run by Airflow itself, on a database of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[4] / "docs" / "deployment" / "airflow.md").read_text("utf-8")
BIN = Path(sys.executable).parent
SUMMARY = """
import json, sys
from airflow.models import DagRun
from airflow.models.xcom import XComModel as XCom
from airflow.utils.session import create_session
with create_session() as session:
    run = session.query(DagRun).filter(DagRun.dag_id == sys.argv[1]).order_by(DagRun.id.desc()).first()
    values = {}
    for each in session.query(XCom).filter(XCom.run_id == run.run_id, XCom.dag_id == run.dag_id):
        values.setdefault(each.task_id, {})[each.key] = XCom.deserialize_value(each)
    states = {each.task_id: each.state for each in run.get_task_instances(session=session)}
print(json.dumps({"state": run.state, "states": states, "values": values}))
"""


def block(title: str) -> str:
    """Return the block of the page whose first line is a comment with this title."""
    found = re.search(rf"```\w+\n# {re.escape(title)}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, title
    return found[1]


def land(shop: Path, name: str, *rows: str) -> None:
    folder = shop / "incoming" / "orders"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(("id,amount", *rows)) + "\n", "utf-8")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The project of the page, with two slices."""
    shop = tmp_path / "shop"
    land(shop, "2024-05-01.csv", "1,10", "2,20")
    land(shop, "2024-05-02.csv", "2,25", "3,5")
    (shop / "project.yml").write_text(block("shop/project.yml"), "utf-8")
    return shop


class Airflow:
    """An Airflow with a database and DAGs of its own."""

    def __init__(self, home: Path) -> None:
        self.dags = home / "dags"
        self.dags.mkdir(parents=True)
        self.environ = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "NO_PROXY": "*",
        }
        self.call(BIN / "airflow", "db", "migrate")

    def call(self, *command: str | Path, may_fail: bool = False) -> str:
        done = subprocess.run(
            command, env=self.environ, capture_output=True, text=True, check=False, timeout=500
        )
        assert may_fail or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def test(self, dag: str, text: str, *given: str) -> dict[str, Any]:
        """Run a DAG; return its state, and the state and the values of each task."""
        (self.dags / f"{dag}.py").write_text(text, "utf-8")
        log = self.call(BIN / "airflow", "dags", "test", dag, *given, may_fail=True)
        found = json.loads(self.call(sys.executable, "-c", SUMMARY, dag).splitlines()[-1])
        return {**found, "log": log}


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    return Airflow(tmp_path_factory.mktemp("airflow"))


@pytest.fixture
def served(shop: Path, airflow: Airflow) -> Iterator[Path]:
    """The project, with a server that Airflow has a connection to."""
    place: tuple[str, ...] = ("--project", str(shop))
    port = "18377"
    command = [str(BIN / "lakewright"), *place, "serve", "--allow-actions", "--port", port]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            token = shop / ".lakewright" / "serve.token"
            until = time.monotonic() + 60
            while not token.exists():
                assert time.monotonic() < until
                time.sleep(0.2)
            connection = {
                **{"conn_type": "http", "host": "127.0.0.1", "port": int(port)},
                "extra": {"token_file": str(token)},
            }
            airflow.environ["AIRFLOW_CONN_SHOP"] = json.dumps(connection)
            graph = airflow.call(BIN / "lakewright", *place, "graph", "daily", "-o", "json")
            (airflow.dags / "daily.json").write_text(graph, "utf-8")
            yield shop
        finally:
            server.terminate()


def test_the_provider_is_known(airflow: Airflow) -> None:
    assert "lakewright-airflow" in airflow.call(BIN / "airflow", "providers", "list")


def test_a_task_applies_in_the_worker_and_fails_if_a_slice_does(shop: Path, airflow: Airflow) -> None:
    dag = block("nightly.py").replace("/srv/shop", str(shop))
    found = airflow.test("nightly", dag)
    assert found["states"] == {"apply": "success"}, found["log"]
    done = found["values"]["apply"]["return_value"]
    assert done["needs_you"] == []
    assert {"forward orders", "build totals"} <= set(done["taken"])
    land(shop, "2024-05-03.csv", "4,many")
    failed = airflow.test("nightly", dag.replace("retries=2", "retries=0"))
    assert failed["states"] == {"apply": "failed"}
    assert "lakewright plan" in failed["log"]


def test_a_job_s_targets_are_tasks_on_a_server_and_a_sensor_waits_for_a_slice(
    served: Path, airflow: Airflow
) -> None:
    found = airflow.test("shop", block("shop.py"), "2024-05-02")
    tasks = ("daily.orders", "daily.totals", "daily.some_order", "orders_of_the_day")
    assert found["states"] == dict.fromkeys(tasks, "success"), found["log"]
    assert found["values"]["orders_of_the_day"]["return_value"] == "processed"
    run = found["values"]["daily.orders"]["return_value"]
    built = [each for each in run["targets"] if each["phase"] == "BUILD"]
    assert [(each["name"], each["rows_in"], each["changed"]) for each in built] == [("orders", 4, 4)]
    page = f"http://127.0.0.1:18377/runs/{run['run_id']}"
    assert found["values"]["daily.orders"]["_link_OperatorPageLink"] == page
    # Without the triggerer, and with a job that there is not: the server says so, and nothing is tried again.
    text = block("shop.py").replace("deferrable=True", "deferrable=False")
    text = text.replace('"daily", server', '"daily", phase="destroy", server')
    refused = airflow.test("shop", text, "2024-05-02")
    assert refused["states"]["daily.orders"] == "failed"
    assert "lakewright job daily destroy" in refused["log"]
