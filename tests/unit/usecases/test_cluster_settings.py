"""What `validate` and `doctor` say of a cluster before anything runs there; no JVM."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import InProcess

MODEL = {
    "connections": {"c": {}},
    "entities": {
        "regions": {
            "id": 1,
            "connection": "c",
            "processtype": "merge",
            "columns": [{"name": "id", "fieldroles": ["businesskey"]}],
        }
    },
}


def project(folder: Path, cluster: dict[str, object]) -> InProcess:
    (folder / "model.yml").write_text(json.dumps(MODEL))
    sections = {"name": "shop", "modules": ["model.yml"], "lake": {"root_folder": "lake"}, "cluster": cluster}
    (folder / "project.yml").write_text(json.dumps(sections))
    return InProcess(folder)


def test_validate_names_a_lake_that_the_executors_do_not_see(tmp_path: Path) -> None:
    told = project(tmp_path, {"master": "spark://127.0.0.1:9"}).run("validate")
    assert told.code != 0
    assert "a folder of this machine, but Spark works on spark://127.0.0.1:9" in told.all
    assert "cluster: {shared: true}" in told.all
    assert project(tmp_path, {"master": "spark://127.0.0.1:9", "shared": True}).run("validate").code == 0


def test_doctor_says_that_the_master_does_not_answer(tmp_path: Path) -> None:
    shop = project(tmp_path, {"master": "spark://127.0.0.1:9", "shared": True})
    checks = json.loads(shop.run("doctor", "-o", "json").out)["checks"]
    found = next(each for each in checks if each["name"] == "cluster")
    assert found["ok"] is False
    assert "can't be reached: 127.0.0.1:9: Connection refused" in found["message"]


def test_nothing_is_claimed_if_the_run_is_refused(tmp_path: Path) -> None:
    shop = project(tmp_path, {"master": "spark://127.0.0.1:9"})
    bronze = tmp_path / "lake/bronze/c/regions"
    bronze.mkdir(parents=True)
    (bronze / "d1.csv").write_text("id\n1\n")
    told = shop.run("process", "regions")
    assert told.code != 0
    assert "rows would be lost" in told.err
    assert not (tmp_path / ".lakewright").exists()
