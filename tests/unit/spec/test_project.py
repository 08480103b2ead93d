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


def test_the_default_of_a_variable_and_the_names_of_a_project_are_no_secrets(tmp_path: Path) -> None:
    """E9: a default that is written in a file of the project would hide the same word everywhere."""
    text = """
        environment: ["jdbc_password=$System.getenv('JDBC_PASSWORD', 'weather')", api_token=literal]
        connections:
          db: {kind: jdbc, url: "jdbc:x://h/weather", password: $jdbc_password}
          dev: {kind: jdbc, url: "jdbc:x://h/weather", password: "$System.getenv('OTHER', 'weather')"}
          own: {kind: jdbc, url: "jdbc:x://h/weather", password: own}
        """
    assert load(tmp_path, text, environ={}).secrets == {"literal"}
    assert load(tmp_path, text, environ={"JDBC_PASSWORD": "weather"}).secrets == {"literal", "weather"}
    assert load(tmp_path, text, environ={"JDBC_PASSWORD": "own"}).secrets == {"literal", "own"}
