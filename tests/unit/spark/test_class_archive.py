"""Where the archive of the JVM's classes is, and when it is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakewright.spark.jars import jars_folder
from lakewright.spark.java import Java, archive_options, archive_path
from lakewright.spark.releases import delta_jars, installed_release


def test_without_an_archive_the_jvm_gets_no_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert archive_options(Java(tmp_path, 17, "PATH"), {}) == ()


def test_the_archive_is_used_once_it_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    java = Java(tmp_path, 17, "PATH")
    archive = archive_path(java, {})
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in archive_options(java, {})


def test_another_java_at_the_same_place_has_another_archive(tmp_path: Path) -> None:
    java = Java(tmp_path, 17, "PATH")
    before = archive_path(java, {})
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.16"')
    assert archive_path(java, {}) != before


def test_a_jar_that_has_changed_or_moved_needs_another_archive(tmp_path: Path) -> None:
    """A JVM ignores an archive whose jars are not those of its class path, and says nothing by default."""
    java, environ = Java(tmp_path, 17, "PATH"), {"LAKEWRIGHT_CACHE": str(tmp_path / "cache")}
    jar = jars_folder(environ) / next(iter(delta_jars(installed_release()))).name
    found = {archive_path(java, environ)}
    jar.parent.mkdir(parents=True)
    jar.write_text("1")
    found.add(archive_path(java, environ))
    os.utime(jar, (1, 1))
    found.add(archive_path(java, environ))
    jar.write_text("22")
    found.add(archive_path(java, environ))
    found.add(archive_path(java, {"LAKEWRIGHT_CACHE": str(tmp_path / "other")}))
    assert len(found) == 5
