"""The cache of this machine, and its jars of Delta and of JDBC drivers, fetched once from Maven Central.

`spark.jars.packages` would resolve and copy 33 jars at each start of a session, which takes seconds
(docs/decisions/004-jars-from-maven-central.md). Which jars a release of Spark needs, `releases` says.

    python -m lakewright.spark.jars        fetches missing jars and prints how many it fetched
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from pathlib import Path

from lakewright.errors import NotInstalled, SparkUnavailable
from lakewright.spark.releases import Jar, Release, delta_jars, installed_release, store_jars

log = logging.getLogger(__name__)


MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
TRIES = 3
"""Attempts to fetch a jar: one lost connection should not fail a set-up."""

TIMEOUT_SECONDS = 60

_LOG_STORE = Path(__file__).with_name("lakewright-storage.jar")


POSTGRES_DRIVER = Jar(
    "org.postgresql",
    "postgresql",
    "42.7.8",
    "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7",
)
"""PostgreSQL's JDBC driver, fetched only for projects that connect to one."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for jars and launchers; it need not exist yet.

    It is `LAKEWRIGHT_CACHE` if that is set, otherwise `lakewright` below `XDG_CACHE_HOME` or `~/.cache`.

    Example:
        >>> cache_folder({"XDG_CACHE_HOME": "/var/cache"}).as_posix()
        '/var/cache/lakewright'
    """
    if named := environ.get("LAKEWRIGHT_CACHE"):
        return Path(named).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakewright"


def jars_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder that holds the jars; it need not exist yet."""
    return cache_folder(environ) / "jars"


def missing_jars(folder: Path, jars: Iterable[Jar]) -> list[Jar]:
    """Return the jars that the folder lacks, or holds with different content."""
    return [jar for jar in jars if _sha256(folder / jar.name) != jar.sha256]


def fetch_jars(environ: Mapping[str, str], jars: Iterable[Jar]) -> list[Path]:
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


def log_store_jar() -> Path:
    """Return the jar with our log store for S3, which is a part of the package.

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


def fetch_store_jars(environ: Mapping[str, str], release: Release, stores: Iterable[str]) -> list[Path]:
    """Return the package's own jar, and those by which Spark uses kinds of object stores, fetched if missing.

    Without a store, the own jar is left out if the package was installed without it.

    Raises:
        NotInstalled: See `fetch_jars` and `log_store_jar`.
    """
    jars = [jar for kind in sorted(stores) for jar in store_jars(release, kind)]
    if not jars:
        return [_LOG_STORE] if _LOG_STORE.is_file() else []
    return [log_store_jar(), *fetch_jars(environ, jars)]


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
        # The operator chooses the scheme: a mirror may be a folder, `file:`.
        with (
            os.fdopen(handle, "wb") as sink,
            urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as source,  # noqa: S310 - see above
        ):
            shutil.copyfileobj(source, sink)
        if (found := _sha256(part)) != sha256:
            raise NotInstalled(
                f"{url} has SHA-256 {found}, expected {sha256}; it was not saved",
                remedy="Try again; if the error persists, the repository or a proxy alters files.",
            )
        # The cache may be shared between users, and mkstemp creates files for one user only.
        part.chmod(0o644)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def _sha256(path: Path) -> str | None:
    """Return the SHA-256 of a file, or None if there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
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
    try:
        wanted = delta_jars(installed_release())
        missing = missing_jars(jars_folder(os.environ), wanted)
        fetch_jars(os.environ, wanted)
    except (NotInstalled, SparkUnavailable) as error:
        print(f"{error}\n{error.remedy}", file=sys.stderr)
        return 1
    if missing:
        print(f"fetched {len(missing)} jars of Delta Lake into {jars_folder(os.environ)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
