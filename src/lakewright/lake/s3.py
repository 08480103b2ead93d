"""Amazon S3, and stores with its interface: Hadoop's file system is `s3a`."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lakewright.errors import LakewrightError, SpecError
from lakewright.lake.store_kind import StoreKind
from lakewright.spark.releases import installed_release
from lakewright.spec.models.storage import Credentials, S3Storage

LOG_STORE = "io.lakewright.storage.PutIfAbsentLogStore"
"""Delta's log on S3, in which two drivers can't replace each other's commits; see `java/`."""

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
class S3(StoreKind):
    """S3.

    Attributes:
        settings: The section of the project; the defaults if it declares none.
    """

    settings: S3Storage = field(default_factory=S3Storage)

    name = "s3"
    title = "S3"
    schemes = ("s3", "s3a")
    default_log_store = "io.delta.storage.S3SingleDriverLogStore"
    store_class = "S3Store"

    @property
    def endpoint_url(self) -> str:
        """The URL of the store; empty for Amazon's own."""
        declared = self.settings.endpoint_url or self._user("endpoint")
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
        declared = self.settings.region or self._user("endpoint.region")
        known = declared or self.environ.get("AWS_REGION") or self.environ.get("AWS_DEFAULT_REGION")
        return known or "us-east-1"

    @property
    def is_path_style(self) -> bool:
        """Whether the bucket is a part of the URL's path."""
        if self.settings.path_style is not None:
            return self.settings.path_style
        given = self._user("path.style.access")
        return given.lower() == "true" if given else bool(self.endpoint_url)

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """The credentials that are known; none if they come from the machine's role.

        Raises:
            SpecError: The profile that is declared has no keys.
        """
        s3 = self.settings
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

    @property
    def log_store(self) -> str:
        """The class by which Spark commits: ours, unless this Hadoop has no conditional writes."""
        try:
            is_conditional = installed_release().has_conditional_writes
        except LakewrightError:  # the start of Spark says so
            return LOG_STORE
        return LOG_STORE if is_conditional else self.default_log_store

    def hadoop_conf(self) -> dict[str, str]:
        """Return Hadoop's settings of the file system."""
        keys = self.keys
        return {
            "fs.s3a.endpoint": self.endpoint_url,
            "fs.s3a.endpoint.region": self.region,
            "fs.s3a.path.style.access": str(self.is_path_style).lower(),
            "fs.s3a.access.key": keys.get("access_key", ""),
            "fs.s3a.secret.key": keys.get("secret_key", ""),
            "fs.s3a.session.token": keys.get("session_token", ""),
            # Names of new files are unique: asking whether they exist costs two requests a file.
            "fs.s3a.performance.flags": "create,mkdir",
            **{f"fs.s3a.analytics.accelerator.physicalio.{key}": text for key, text in _READING.items()},
            # One place has one name: `s3://` is `s3a://`.
            "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        }

    def options(self, bucket: str) -> dict[str, str]:
        """Return the settings for the `deltalake` package."""
        keys = self.keys
        return {
            "aws_region": self.region,
            "aws_endpoint_url": self.endpoint_url,
            "allow_http": "true" if self.endpoint_url.startswith("http://") else "",
            "aws_virtual_hosted_style_request": str(not self.is_path_style).lower(),
            "aws_access_key_id": keys.get("access_key", ""),
            "aws_secret_access_key": keys.get("secret_key", ""),
            "aws_session_token": keys.get("session_token", ""),
            # Writers that are first win; there is no lock that a dead one leaves behind.
            "aws_conditional_put": "etag",
        }

    def _user(self, key: str) -> str:
        return self.user(f"fs.s3a.{key}")


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
