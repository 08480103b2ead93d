"""What is secret shows nowhere, however a run fails: `processing-manifest.md`, "Record" (payloads)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.lake import SmallLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OF_ENVIRONMENT = "canary-of-environment-93"
OF_CONNECTION = "canary/of+connection%94"
OF_CONFIGURATION = "canary-of-configuration-95"
OF_URL = "canary-of-url-96"
OF_PARAMETER = "canary-of-parameter-97"
SECRETS = (OF_ENVIRONMENT, OF_CONNECTION, OF_CONFIGURATION, OF_URL, OF_PARAMETER)

MODEL = f"""
config: ["spark.hadoop.store.secret={OF_CONFIGURATION}"]
connections:
  db: {{settings: {{password: "{OF_CONNECTION}"}}}}
environment: ["told=$System.getenv('CANARY_PASSWORD')"]
mappings:
  loud:
    kind: sql
    sql: >-
      SELECT CAST(raise_error('refused $told and {OF_CONFIGURATION} by {OF_CONNECTION} with $login_token
      at s3://ann:{OF_URL}@store/lake') AS STRING) AS x
relations:
  loud: {{kind: delta, location: "${{project.basedir}}/lake/gold/loud"}}
targets:
  loud: {{kind: relation, mapping: loud, relation: loud}}
jobs:
  loud:
    parameters: [{{name: login_token, default: none}}]
    targets: [loud, customers, prices]
    hooks:
      - {{kind: command, command: [sh, -c, "cat >> heard"], when: {{category: target|alert}}}}
"""


def test_secrets_are_in_no_log_record_history_commit_hook_or_page(
    tmp_path: Path, session: SparkSession
) -> None:
    lake = SmallLake.make(tmp_path / "lake", session)
    (lake.folder / "model" / "loud.yml").write_text(MODEL)
    lake.slice("prices", "2022-01-01", [{"id": 1, "name": "a"}])
    # Such a key is named by the error that refuses the slice.
    lake.slice("customers", "2022-01-01", [{"id": OF_CONFIGURATION, "name": name} for name in "ab"])
    environ = {"CANARY_PASSWORD": OF_ENVIRONMENT}
    run = ("job", "loud", "build", f"login_token={OF_PARAMETER}", "-k", "-vv")

    failed = lake.run(*run, "--log-format", "json", "-o", "json", **environ)
    assert failed.code == 1, failed.all
    assert "refused ***" in failed.out
    assert "DEBUG" in failed.err

    pages = [failed.all]
    for command in (
        ("status",),
        ("history", "show", lake.json("history")[0]["run_id"]),
        ("history", "-o", "json"),
        ("manifest", "export"),
        ("plan", "loud", "build", f"login_token={OF_PARAMETER}"),
        ("show", "relation", "loud", "-o", "json"),
        ("docs", "--no-checks"),
        ("doctor", "-vv"),
    ):
        pages.append(lake.run(*command, **environ).all)
    written = [
        path
        for pattern in (
            ".lakewright/*",
            "lake/silver/*/_delta_log/*",
            "generated-documentation/**/*",
            "heard",
        )
        for path in lake.folder.glob(pattern)
        if path.is_file()
    ]
    heard = (lake.folder / "heard").read_text()
    assert heard.count('"slice_failed"') == 1
    assert any("occurs more than once" in page and "FAILED" in page for page in pages)
    assert {"heard", "index.html", "manifest.db", "00000000000000000000.json"} <= {p.name for p in written}
    for secret in SECRETS:
        assert [page for page in pages if secret in page] == []
        assert [path for path in written if secret.encode() in path.read_bytes()] == []
