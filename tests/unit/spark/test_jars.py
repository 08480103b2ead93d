"""Fetching jars from a Maven repository, here a folder behind a `file:` address."""

from __future__ import annotations

import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakewright.errors import NotInstalled
from lakewright.spark import jars
from lakewright.spark.jars import fetch_jars, jars_folder, missing_jars
from lakewright.spark.releases import Jar


def make_jar(repository: Path, artifact: str, content: bytes = b"classes") -> Jar:
    jar = Jar("org.example", artifact, "1.0", hashlib.sha256(content).hexdigest())
    place = repository / "org" / "example" / artifact / "1.0" / jar.name
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    return jar


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return tmp_path / "repository"


@pytest.fixture
def environ(tmp_path: Path, repository: Path) -> dict[str, str]:
    return {"LAKEWRIGHT_CACHE": str(tmp_path / "cache"), "LAKEWRIGHT_MAVEN_URL": f"{repository.as_uri()}/"}


def test_jars_come_from_the_mirror_into_the_cache(repository: Path, environ: dict[str, str]) -> None:
    wanted = [make_jar(repository, "one", b"1"), make_jar(repository, "two", b"2")]
    paths = fetch_jars(environ, wanted)
    assert [path.read_bytes() for path in paths] == [b"1", b"2"]
    assert sorted(jars_folder(environ).iterdir()) == sorted(paths)


def test_the_first_start_says_what_it_fetches_b7(
    repository: Path, environ: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    wanted = [make_jar(repository, name, name.encode()) for name in ("one", "two")]
    with caplog.at_level(logging.INFO, logger="lakewright.spark"):
        fetched = fetch_jars(environ, wanted)
        fetch_jars(environ, wanted)
    folder = fetched[0].parent
    assert caplog.messages == [
        f"fetching {path.name} into {folder} ({number} of {len(fetched)})"
        for number, path in enumerate(fetched, 1)
    ]


def test_what_is_there_is_not_fetched_again(repository: Path, environ: dict[str, str]) -> None:
    jar = make_jar(repository, "one")
    fetch_jars(environ, [jar])
    offline = {**environ, "LAKEWRIGHT_MAVEN_URL": "file:///nowhere"}
    assert fetch_jars(offline, [jar]) == [jars_folder(environ) / jar.name]


def test_a_truncated_jar_is_missing_and_fetched_again(repository: Path, environ: dict[str, str]) -> None:
    jar = make_jar(repository, "one", b"whole")
    (path,) = fetch_jars(environ, [jar])
    path.write_bytes(b"who")
    assert missing_jars(path.parent, [jar]) == [jar]
    fetch_jars(environ, [jar])
    assert path.read_bytes() == b"whole"


def test_a_jar_with_other_bytes_is_refused_and_not_kept(repository: Path, environ: dict[str, str]) -> None:
    jar = make_jar(repository, "one")
    (repository / "org" / "example" / "one" / "1.0" / jar.name).write_bytes(b"altered")
    with pytest.raises(NotInstalled, match="expected"):
        fetch_jars(environ, [jar])
    assert list(jars_folder(environ).iterdir()) == []


def test_without_the_network_the_remedy_names_command_mirror_and_folder(environ: dict[str, str]) -> None:
    with pytest.raises(NotInstalled, match=r"one-1\.0\.jar could not be fetched") as caught:
        fetch_jars(environ, [Jar("org.example", "one", "1.0", "0" * 64)])
    remedy = caught.value.remedy or ""
    assert all(
        part in remedy
        for part in ("lakewright.spark.jars", "LAKEWRIGHT_MAVEN_URL", environ["LAKEWRIGHT_CACHE"])
    )
    assert list(jars_folder(environ).iterdir()) == []


def test_a_jar_put_there_by_hand_is_used(environ: dict[str, str]) -> None:
    jar = Jar("org.example", "one", "1.0", hashlib.sha256(b"by hand").hexdigest())
    jars_folder(environ).mkdir(parents=True)
    (jars_folder(environ) / jar.name).write_bytes(b"by hand")
    assert fetch_jars(environ, [jar])[0].read_bytes() == b"by hand"


def test_several_may_fetch_at_once(repository: Path, environ: dict[str, str]) -> None:
    jar = make_jar(repository, "one", b"x" * 1_000_000)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fetch_jars(environ, [jar])[0].read_bytes(), range(8)))
    assert set(found) == {b"x" * 1_000_000}
    assert [path.name for path in jars_folder(environ).iterdir()] == [jar.name]


def test_the_command_tells_faults_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setenv("LAKEWRIGHT_MAVEN_URL", "file:///nowhere")
    assert jars.main() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "could not be fetched" in err
