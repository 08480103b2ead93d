"""Jars of Delta and of JDBC drivers, fetched once from Maven Central into the cache.

`spark.jars.packages` would resolve and copy 33 jars at each start of a session, which takes seconds. The jars
below are those that Delta on Spark loads and Spark doesn't contain
(docs/decisions/004-jars-from-maven-central.md).

    python -m lakewright.spark.jars        fetches missing jars and prints how many it fetched
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

from lakewright.errors import NotInstalled
from lakewright.spark.cache import cache_folder

log = logging.getLogger(__name__)

__all__ = ["DELTA_JARS", "POSTGRES_DRIVER", "Jar", "fetch_jars", "jars_folder", "missing_jars"]

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
TRIES = 3
"""Attempts to fetch a jar: one lost connection should not fail a set-up."""

TIMEOUT_SECONDS = 60
BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact of Maven Central, with the SHA-256 that its bytes must have."""

    group: str
    artifact: str
    version: str
    sha256: str
    packaging: str = "jar"

    @property
    def name(self) -> str:
        """The file's name, in Maven's repository and in the cache."""
        return f"{self.artifact}-{self.version}.{self.packaging}"

    def url(self, repository: str) -> str:
        """Return where the jar is in a Maven repository."""
        return "/".join(
            [repository.rstrip("/"), *self.group.split("."), self.artifact, self.version, self.name]
        )


DELTA_JARS: tuple[Jar, ...] = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
    Jar(
        "io.delta",
        "delta-kernel-api",
        "4.4.0",
        "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    ),
    Jar(
        "io.delta",
        "delta-kernel-defaults",
        "4.4.0",
        "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    ),
    Jar(
        "io.delta",
        "delta-kernel-unitycatalog",
        "4.4.0",
        "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    ),
    Jar(
        "io.unitycatalog",
        "unitycatalog-client",
        "0.6.0",
        "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    ),
    Jar(
        "io.unitycatalog",
        "unitycatalog-hadoop",
        "0.6.0",
        "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
    ),
)

POSTGRES_DRIVER = Jar(
    "org.postgresql",
    "postgresql",
    "42.7.8",
    "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7",
)
"""PostgreSQL's JDBC driver, fetched only for projects that connect to one."""


def jars_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder that holds the jars; it need not exist yet."""
    return cache_folder(environ) / "jars"


def missing_jars(folder: Path, jars: Iterable[Jar] = DELTA_JARS) -> list[Jar]:
    """Return the jars that the folder lacks, or holds with different content."""
    return [jar for jar in jars if not _holds(folder / jar.name, jar.sha256)]


def fetch_jars(environ: Mapping[str, str], jars: Iterable[Jar] = DELTA_JARS) -> list[Path]:
    """Return the paths of all the jars, after fetching those that were missing.

    Each is downloaded to a temporary file and renamed once its SHA-256 is verified. An interrupted run leaves
    no incomplete jar, the next run fetches only the rest, and several processes may fetch at the same time.

    Raises:
        NotInstalled: A jar can't be fetched, or its content is not the expected one.
    """
    wanted = tuple(jars)
    folder = jars_folder(environ)
    repository = environ.get("LAKEWRIGHT_MAVEN_URL", MAVEN_CENTRAL)
    missing = missing_jars(folder, wanted)
    for number, jar in enumerate(missing, 1):
        # The first start of Spark on a machine takes a minute because of them.
        log.info("fetching %s into %s (%d of %d)", jar.name, folder, number, len(missing))
        _fetch(jar, repository, folder)
    return [folder / jar.name for jar in wanted]


def _fetch(jar: Jar, repository: str, folder: Path) -> None:
    url = jar.url(repository)
    for attempt in range(1, TRIES + 1):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return _download(url, folder / jar.name, jar.sha256)
        except (OSError, HTTPException) as error:
            if attempt == TRIES:
                raise NotInstalled(
                    f"{jar.name} could not be fetched from {url}: {error}", remedy=_remedy(folder)
                ) from error
    raise AssertionError("unreachable")


def _download(url: str, place: Path, sha256: str) -> None:
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as sink:
            found = _copy(url, sink)
        if found != sha256:
            raise NotInstalled(
                f"{url} has SHA-256 {found}, expected {sha256}; it was not saved",
                remedy="Try again; if the error persists, the repository or a proxy alters files.",
            )
        # The cache may be shared between users, and mkstemp creates files for one user only.
        part.chmod(0o644)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def _copy(url: str, sink: BinaryIO) -> str:
    digest = hashlib.sha256()
    # The operator chooses the scheme: a mirror may be a folder, `file:`.
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as source:  # noqa: S310 - see above
        while block := source.read(BLOCK):
            digest.update(block)
            sink.write(block)
    return digest.hexdigest()


def _holds(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NotInstalled(
            f"the jar {path} can't be read: {error.strerror}",
            remedy="Give the user who runs Lakewright access to the folder of jars, or set LAKEWRIGHT_CACHE "
            "to another folder.",
        ) from error


def _remedy(folder: Path) -> str:
    return (
        "Run `python -m lakewright.spark.jars` where the network is reachable, set LAKEWRIGHT_MAVEN_URL to "
        f"a mirror of Maven Central, or put the jar into {folder} by hand."
    )


def main() -> int:
    """Fetch missing jars; return the exit code of the process."""
    missing = missing_jars(jars_folder(os.environ))
    try:
        fetch_jars(os.environ)
    except NotInstalled as error:
        print(f"{error}\n{error.remedy}", file=sys.stderr)
        return 1
    if missing:
        print(f"fetched {len(missing)} jars of Delta Lake into {jars_folder(os.environ)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
