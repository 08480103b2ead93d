"""Where the archive of the JVM's classes is, and when it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakewright.spark.java import Java, archive_options, archive_path


def test_without_an_archive_the_jvm_gets_no_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert archive_options(Java(tmp_path, 17, "PATH")) == ()


def test_the_archive_is_used_once_it_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    java = Java(tmp_path, 17, "PATH")
    archive_path(java).parent.mkdir(parents=True)
    archive_path(java).touch()
    assert f"-XX:SharedArchiveFile={archive_path(java)}" in archive_options(java)


def test_another_java_at_the_same_place_has_another_archive(tmp_path: Path) -> None:
    java = Java(tmp_path, 17, "PATH")
    before = archive_path(java)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.16"')
    assert archive_path(java) != before
