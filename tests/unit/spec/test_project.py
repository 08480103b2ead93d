"""A loaded project."""

from __future__ import annotations

from pathlib import Path

from tests.unit.spec.kinds import load


def test_secrets_of_connections_and_the_manifest_are_known(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        """
        environment: [db_password=$System.getenv('PW'), stage=dev]
        manifest: {kind: postgres, url: "postgresql://me:hush-1@host/db"}
        connections:
          db: {kind: jdbc, url: "jdbc:x://u:hush-2@h", password: $db_password}
          web: {settings: {server: x, api: {token: hush-4}}}
        """,
        environ={"PW": "hush-3"},
    )
    assert project.secrets == {"hush-1", "hush-2", "hush-3", "hush-4"}
