"""What is secret shows nowhere, however a run fails: `processing-manifest.md`, "Record" (payloads)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.lake import SmallLake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OF_ENVIRONMENT = "canary-of-environment-93"
OF_CONNECTION = "canary/of+connection%94"
OF_CONFIGURATION = "canary-of-configuration-95"
OF_URL = "canary-of-url-96"
SECRETS = (OF_ENVIRONMENT, OF_CONNECTION, OF_CONFIGURATION, OF_URL)

MODEL = f"""
config: ["spark.hadoop.store.secret={OF_CONFIGURATION}"]
connections:
  db: {{settings: {{password: "{OF_CONNECTION}"}}}}
environment: ["told=$System.getenv('CANARY_PASSWORD')"]
mappings:
  loud:
    kind: sql
    sql: >-
      SELECT raise_error('refused $told and {OF_CONFIGURATION} by {OF_CONNECTION}
      at s3://ann:{OF_URL}@store/lake') AS x
relations:
  loud: {{kind: delta, location: "${{project.basedir}}/lake/gold/loud"}}
targets:
  loud: {{kind: relation, mapping: loud, relation: loud}}
jobs:
  loud:
    targets: loud
    hooks:
      - {{kind: command, command: [sh, -c, "cat >> heard"], when: {{category: target, status: FAILED}}}}
"""


def test_secrets_are_in_no_log_record_history_commit_or_page(tmp_path: Path) -> None:
    lake = SmallLake.make(tmp_path / "lake")
    (lake.folder / "model" / "loud.yml").write_text(MODEL)
    environ = {"CANARY_PASSWORD": OF_ENVIRONMENT}

    failed = lake.run("job", "loud", "build", "-vv", "--log-format", "json", **environ)
    assert failed.code == 1, failed.all
    assert "refused" in failed.all

    pages = [failed.all]
    for command in (
        ("status",),
        ("history", "show", lake.json("history")[0]["run_id"]),
        ("history", "-o", "json"),
        ("manifest", "export"),
        ("plan", "loud", "build"),
        ("job", "loud", "build", "-o", "json"),
        ("show", "relation", "loud", "-o", "json"),
        ("doctor",),
    ):
        pages.append(lake.run(*command, **environ).all)
    pages.append((lake.folder / "heard").read_text())
    written = [path.read_bytes() for path in (lake.folder / ".lakewright").rglob("*") if path.is_file()]
    for secret in SECRETS:
        for page in pages:
            assert secret not in page
        assert not any(secret.encode() in content for content in written)
