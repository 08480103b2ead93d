"""The releases of Spark that Lakewright runs on, and the jars that each of them needs.

One release of Delta Lake is published for several releases of Spark, each with a jar of its own. Hadoop's
file system for S3 must be of the Hadoop that Spark contains (docs/decisions/028-releases-of-spark.md).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from lakewright.errors import NotInstalled, SparkUnavailable

DELTA = "4.4.0"
"""The release of Delta Lake whose jars are used, with every release of Spark."""

_CLIENT = "pyspark-client"
"""PySpark's client for Spark Connect alone, without Spark."""

_LOCKS = Path(__file__).parent
"""The folder of the lists of jars."""

_ANY = "*"
"""The section of a list with the jars that are the same for every release."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact of Maven Central, with the SHA-256 that its bytes must have."""

    group: str
    artifact: str
    version: str
    sha256: str
    packaging: str = "jar"
    classifier: str = ""

    @property
    def name(self) -> str:
        """The file's name, in Maven's repository and in the cache."""
        parts = filter(None, (self.artifact, self.version, self.classifier))
        return f"{'-'.join(parts)}.{self.packaging}"

    @property
    def coordinates(self) -> str:
        """The name that `spark.jars.packages` takes."""
        return f"{self.group}:{self.artifact}:{self.version}"

    def url(self, repository: str) -> str:
        """Return where the jar is in a Maven repository."""
        return "/".join(
            [repository.rstrip("/"), *self.group.split("."), self.artifact, self.version, self.name]
        )


@dataclass(frozen=True, slots=True)
class Release:
    """A minor release of Spark.

    Attributes:
        spark: Its number, as `4.2`.
        oldest: The first of its patches that Delta's jar was built with and runs on.
        has_conditional_writes: Whether its Hadoop can create an object in S3 only if there is none, which a
            commit needs beside those of other drivers. Hadoop has that from 3.4.2 on.
    """

    spark: str
    oldest: int = 0
    has_conditional_writes: bool = True


RELEASES = (Release("4.0", 1, has_conditional_writes=False), Release("4.1"), Release("4.2"))
"""Oldest first; the last one is the release that the lock pins."""


def supported_releases() -> str:
    """Return the range of releases, as `4.0 to 4.2`."""
    return f"{RELEASES[0].spark} to {RELEASES[-1].spark}"


def check_release(found: str) -> Release:
    """Return the release of a version of Spark, as `4.1.3`.

    Raises:
        SparkUnavailable: Lakewright doesn't run on it.
    """
    numbers = re.match(r"(\d+\.\d+)(?:\.(\d+))?", found)
    for release in RELEASES:
        if numbers is not None and numbers[1] == release.spark and int(numbers[2] or 0) >= release.oldest:
            return release
    raise SparkUnavailable(
        f"Spark {found} is not supported: Lakewright runs on Spark {supported_releases()}",
        remedy="Install another one, as in `pip install 'lakewright[spark]'`; of Spark "
        f"{RELEASES[0].spark}, {RELEASES[0].spark}.{RELEASES[0].oldest} is the first.",
        details={"version": found, "supported": [release.spark for release in RELEASES]},
    )


def installed_release() -> Release:
    """Return the release of the PySpark that is installed.

    Raises:
        NotInstalled: There is no PySpark.
        SparkUnavailable: Lakewright doesn't run on it.
    """
    return check_release(installed_version())


def installed_version() -> str:
    """Return the version of the PySpark that is installed, which isn't imported.

    Raises:
        NotInstalled: There is no PySpark.
    """
    for name in ("pyspark", _CLIENT):
        with suppress(PackageNotFoundError):
            return version(name)
    raise NotInstalled.of(PackageNotFoundError("pyspark"), "Spark", "spark")


def is_client_alone() -> bool:
    """Return whether only PySpark's client for Spark Connect is installed, without Spark itself."""
    has_spark, has_client = (any(distributions(name=name)) for name in ("pyspark", _CLIENT))
    return has_client and not has_spark


def delta_jars(release: Release) -> tuple[Jar, ...]:
    """Return the jars of Delta Lake that a session on the release loads; first the one for this release."""
    return _listed_jars(release, "delta")


def store_jars(release: Release, kind: str) -> tuple[Jar, ...]:
    """Return the jars of Hadoop's file system for a kind of object store that Spark doesn't contain.

    There are none if that kind is not offered on the release.

    Amazon's bundle of its whole SDK has 686 MB. The jars that the file system needs of it have 13 MB
    (docs/decisions/004-jars-from-maven-central.md).
    """
    return _listed_jars(release, kind)


@cache
def _listed_jars(release: Release, name: str) -> tuple[Jar, ...]:
    jars, section = [], ""
    for line in (_LOCKS / f"{name}_jars.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section in {release.spark, _ANY}:
            coordinates, sha256 = line.split()
            group, artifact, number, classifier = f"{coordinates}::".split(":")[:4]
            jars.append(Jar(group, artifact, number, sha256, classifier=classifier))
    return tuple(jars)
