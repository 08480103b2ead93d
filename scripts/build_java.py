"""Compile `java/` to `src/lakewright/spark/lakewright-storage.jar`, unless that is of the same sources.

Any Java of version 17 or newer will do, without a compiler: Eclipse's is fetched from Maven Central, with
what the sources are compiled against. The same sources give the same bytes.

    python scripts/build_java.py
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from lakewright.errors import LakewrightError  # noqa: E402 - not installed yet, where a wheel is built
from lakewright.spark.jars import fetch_jars  # noqa: E402
from lakewright.spark.java import find_java  # noqa: E402
from lakewright.spark.releases import RELEASES, Jar, delta_jars  # noqa: E402

SOURCES = ROOT / "java"
JAR = ROOT / "src" / "lakewright" / "spark" / "lakewright-storage.jar"
STAMP = "META-INF/sources.sha256"

DELTA_STORAGE = next(jar for jar in delta_jars(RELEASES[-1]) if jar.artifact == "delta-storage")
COMPILER = Jar(
    "org.eclipse.jdt",
    "ecj",
    "3.46.100",
    "74c93172475fee0cd4e6eefb44233516dd40525642da35d009146d97ea598229",
)
HADOOP = Jar(
    "org.apache.hadoop",
    "hadoop-client-api",
    "3.5.0",
    "cc59446ec9ebaceae56fdb8d8c21477766dc5d426325642151c796bec5c4e6b7",
)


def build() -> bool:
    """Write the jar; return False if it was there already.

    Raises:
        LakewrightError: There is no Java, or a jar can't be fetched.
        subprocess.CalledProcessError: The sources have an error, which the compiler printed.
    """
    digest = _digest()
    if _built_from(JAR) == digest:
        return False
    java = find_java(os.environ)
    compiler, *class_path = fetch_jars(os.environ, (COMPILER, HADOOP, DELTA_STORAGE))
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "--release",
            "17",
            "-warn:none",
            "-d",
            folder,
            "-cp",
            os.pathsep.join(map(str, class_path)),
        ]
        subprocess.run(
            [str(java.home / "bin" / "java"), "-jar", str(compiler), *options, str(SOURCES)], check=True
        )
        _write_jar(Path(folder), digest)
    return True


def _digest() -> str:
    found = hashlib.sha256(f"{COMPILER.sha256} {HADOOP.sha256} {DELTA_STORAGE.sha256}".encode())
    for file in sorted(SOURCES.rglob("*.java")):
        found.update(file.relative_to(SOURCES).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def _built_from(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(STAMP).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def _write_jar(classes: Path, digest: str) -> None:
    part = JAR.with_suffix(f".{os.getpid()}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        # Without a time of their own, the files have zip's first one: the same sources give the same bytes.
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\r\n\r\n")
        archive.writestr(zipfile.ZipInfo(STAMP), digest)
        for file in sorted(classes.rglob("*.class")):
            archive.writestr(zipfile.ZipInfo(file.relative_to(classes).as_posix()), file.read_bytes())
    part.replace(JAR)


if __name__ == "__main__":
    try:
        if build():
            print(f"built {JAR.relative_to(ROOT)}")
    except LakewrightError as error:
        sys.exit(f"{error}\n{error.remedy or ''}".strip())
    except subprocess.CalledProcessError:
        sys.exit("the sources in java/ can't be compiled")
