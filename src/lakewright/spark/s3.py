"""The jars by which Spark reads and writes S3, and the log store by which Delta commits there.

Amazon's bundle of its whole SDK has 686 MB. The jars that Hadoop's file system needs of it have 13 MB
(docs/decisions/016-s3-jars.md).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lakewright.errors import NotInstalled
from lakewright.spark.jars import Jar

__all__ = ["log_store_jar", "s3_jars"]

_LOCK = Path(__file__).with_name("s3_jars.txt")
_LOG_STORE = Path(__file__).with_name("lakewright-storage.jar")


@cache
def s3_jars() -> tuple[Jar, ...]:
    """Return the jars of Hadoop's file system for S3 that Spark doesn't contain."""
    jars = []
    for line in _LOCK.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, sha256 = line.split()
            group, artifact, version = name.split(":")
            jars.append(Jar(group, artifact, version, sha256))
    return tuple(jars)


def log_store_jar() -> Path:
    """Return the jar with our log store, which is a part of the package.

    Raises:
        NotInstalled: The package was installed without it.
    """
    if not _LOG_STORE.is_file():
        raise NotInstalled(
            f"{_LOG_STORE.name} is missing, without which two drivers lose commits on S3",
            remedy="Install the wheel, `pip install --force-reinstall lakewright`; in a clone of the "
            "repository run `make setup`.",
        )
    return _LOG_STORE
