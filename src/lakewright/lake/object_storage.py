"""Object stores with the interface of S3: their settings for Spark and for Python, and their objects.

Spark reaches them through Hadoop's file system `s3a`, the `deltalake` and `obstore` packages without a JVM.
All take their settings from the project's `storage:` section, and from the environment.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from lakewright.errors import NotInstalled, SpecError
from lakewright.lake.bucket import Bucket
from lakewright.lake.stored_tables import StoredTables
from lakewright.spec.models.storage import Credentials, S3Storage, StorageSettings

if TYPE_CHECKING:
    from obstore.store import S3Store

__all__ = ["LOG_STORE", "ObjectStorage"]

LOG_STORE = "io.lakewright.storage.PutIfAbsentLogStore"
"""Delta's log on S3, in which two drivers can't replace each other's commits; see `java/`."""

_PREFIX = "spark.hadoop.fs.s3a."

_READING = {
    # A slice reads the table's log and the same few files several times. By default what was read is
    # forgotten after a second. Another content of the object has another tag, by which it is kept.
    "cache.timeout": "60000",
    # By default 2 GiB, more than many a heap.
    "max.memory.limit": str(128 * 1024 * 1024),
    # Spark infers the schema of Parquet without the object's tag. By default the tag that is known then is a
    # day old, and a slice that was replaced since can't be read.
    "metadatastore.ttl": "1000",
}
"""How Hadoop 3.5 reads objects: by Amazon's analytics accelerator, whose cache has these settings."""


@dataclass(frozen=True)
class ObjectStorage:
    """The object stores of a project.

    Attributes:
        settings: The project's `storage:` section.
        environ: The environment variables of the process.
        conf: The user's `spark.*` keys. Those of `spark.hadoop.fs.s3a` apply to what runs without Spark too,
            where the section is silent.
        is_used: Whether the project declares one, or has its lake there.
    """

    settings: StorageSettings = field(default_factory=StorageSettings)
    environ: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    is_used: bool = False

    @property
    def s3(self) -> S3Storage:
        """The settings of S3; the defaults if the project declares none."""
        return self.settings.s3 or S3Storage()

    @property
    def endpoint_url(self) -> str:
        """The URL of the store; empty for Amazon's own."""
        declared = self.s3.endpoint_url or self._user("endpoint")
        given = (
            declared or self.environ.get("AWS_ENDPOINT_URL_S3") or self.environ.get("AWS_ENDPOINT_URL", "")
        )
        if given and "://" not in given:
            scheme = "http" if self._user("connection.ssl.enabled") == "false" else "https"
            return f"{scheme}://{given}"
        return given

    @property
    def region(self) -> str:
        """The region."""
        declared = self.s3.region or self._user("endpoint.region")
        known = declared or self.environ.get("AWS_REGION") or self.environ.get("AWS_DEFAULT_REGION")
        return known or "us-east-1"

    @property
    def is_path_style(self) -> bool:
        """Whether the bucket is a part of the URL's path."""
        if self.s3.path_style is not None:
            return self.s3.path_style
        given = self._user("path.style.access")
        return given.lower() == "true" if given else bool(self.endpoint_url)

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """The credentials that are known; none if they come from the machine's role.

        Raises:
            SpecError: The profile that is declared has no keys.
        """
        s3 = self.s3
        found: tuple[str, ...]
        if s3.credentials is Credentials.STATIC:
            found = (s3.access_key, s3.secret_key, s3.session_token)
        elif s3.credentials is Credentials.PROFILE:
            found = _profile_keys(s3.profile, self.environ)
        elif self._user("access.key"):
            found = tuple(self._user(key) for key in ("access.key", "secret.key", "session.token"))
        else:
            names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
            found = tuple(self.environ.get(name, "") for name in names)
        named = zip(("access_key", "secret_key", "session_token"), found, strict=True)
        return {name: text for name, text in named if text}

    def spark_conf(self) -> dict[str, str]:
        """Return the settings of a Spark session; those that the user gave are left out."""
        keys = self.keys
        ours = {
            f"{_PREFIX}endpoint": self.endpoint_url,
            f"{_PREFIX}endpoint.region": self.region,
            f"{_PREFIX}path.style.access": str(self.is_path_style).lower(),
            f"{_PREFIX}access.key": keys.get("access_key", ""),
            f"{_PREFIX}secret.key": keys.get("secret_key", ""),
            f"{_PREFIX}session.token": keys.get("session_token", ""),
            # Names of new files are unique: asking whether they exist costs two requests a file.
            f"{_PREFIX}performance.flags": "create,mkdir",
            **{f"{_PREFIX}analytics.accelerator.physicalio.{key}": text for key, text in _READING.items()},
            # One place has one name: `s3://` is `s3a://`.
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.delta.logStore.s3.impl": LOG_STORE,
            "spark.delta.logStore.s3a.impl": LOG_STORE,
        }
        return {key: text for key, text in ours.items() if text and key not in self.conf}

    def options(self) -> dict[str, str]:
        """Return the settings for the `deltalake` package."""
        keys = self.keys
        options = {
            "aws_region": self.region,
            "aws_endpoint_url": self.endpoint_url,
            "aws_allow_http": "true" if self.endpoint_url.startswith("http://") else "",
            "aws_virtual_hosted_style_request": str(not self.is_path_style).lower(),
            "aws_access_key_id": keys.get("access_key", ""),
            "aws_secret_access_key": keys.get("secret_key", ""),
            "aws_session_token": keys.get("session_token", ""),
            # Writers that are first win; there is no lock that a dead one leaves behind.
            "aws_conditional_put": "etag",
        }
        return {key: text for key, text in options.items() if text}

    def bucket(self, name: str) -> Bucket:
        """Return a bucket; nothing is asked of the store yet.

        Raises:
            NotInstalled: The package `obstore` is missing.
        """
        with self._lock:
            if name not in self._buckets:
                self._buckets[name] = Bucket(name, self._store(name), self.endpoint_url)
            return self._buckets[name]

    @cached_property
    def tables(self) -> StoredTables:
        """The tables that were opened last."""
        return StoredTables()

    @cached_property
    def _lock(self) -> Any:
        return Lock()

    @cached_property
    def _buckets(self) -> dict[str, Bucket]:
        return {}

    def _store(self, name: str) -> S3Store:
        try:
            from obstore.store import S3Store
        except ImportError as error:
            raise NotInstalled(
                f"s3://{name} can't be read without Spark: the package obstore is missing",
                remedy="Run `pip install 'lakewright[s3]'`.",
            ) from error
        options: Any = self.options()
        allow_http = options.pop("aws_allow_http", "") == "true"
        return S3Store(name, config=options, client_options={"allow_http": allow_http, "timeout": "60s"})

    def _user(self, key: str) -> str:
        return self.conf.get(f"{_PREFIX}{key}", "")


def _profile_keys(profile: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of a profile in AWS's credentials file.

    Raises:
        SpecError: There is no such profile, or it has no keys, as one of single sign-on.
    """
    home = Path(environ.get("HOME") or Path.home())
    file = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials").expanduser()
    found = configparser.RawConfigParser()
    found.read(file, "utf-8")
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    keys = tuple(found.get(profile, name, fallback="") for name in names)
    if not (keys[0] and keys[1]):
        raise SpecError.of(
            f"storage: s3: the profile {profile!r} has no keys in {file}",
            remedy="Add aws_access_key_id and aws_secret_access_key there, or put temporary keys into the "
            "environment (`aws configure export-credentials --format env`), with `credentials: environment`.",
        )
    return keys
