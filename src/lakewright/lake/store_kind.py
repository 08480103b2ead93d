"""What a kind of object store declares: how Spark, `deltalake` and `obstore` reach its buckets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from lakewright.errors import NotInstalled

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

    ObjectStore = AzureStore | GCSStore | S3Store


@dataclass(frozen=True)
class StoreKind(ABC):
    """One kind of object store, as a project declares it.

    Attributes:
        environ: The environment variables of the process.
        conf: The user's `spark.*` keys.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)

    name: ClassVar[str]
    """The name of its section, of its extra, and of its list of jars."""
    title: ClassVar[str]
    """What messages call it."""
    schemes: ClassVar[tuple[str, ...]]
    """The schemes of its locations, the one that the `deltalake` package takes first."""
    default_log_store: ClassVar[str]
    """The class by which Delta commits unless it is told otherwise."""
    store_class: ClassVar[str]
    """The name of obstore's class of stores."""

    @property
    @abstractmethod
    def endpoint_url(self) -> str:
        """The URL of the store; empty for the cloud's own."""

    @property
    def log_store(self) -> str:
        """The class by which Spark commits."""
        return self.default_log_store

    @abstractmethod
    def hadoop_conf(self) -> dict[str, str]:
        """Return Hadoop's settings of the file system, without the prefix `spark.hadoop.`; empty ones too."""

    @abstractmethod
    def options(self, bucket: str) -> dict[str, str]:
        """Return the settings for the `deltalake` package to reach a bucket; empty ones too."""

    def bucket_name(self, bucket: str) -> str:
        """Return the name of a bucket in its store."""
        return bucket

    def spark_conf(self) -> dict[str, str]:
        """Return the settings of a Spark session; those that the user gave are left out."""
        ours = {f"spark.hadoop.{key}": text for key, text in self.hadoop_conf().items()}
        ours |= {f"spark.delta.logStore.{scheme}.impl": self.log_store for scheme in self.schemes}
        return {key: text for key, text in ours.items() if text and key not in self.conf}

    def given_options(self, bucket: str) -> dict[str, str]:
        """Return the settings for the `deltalake` package that are not empty."""
        return {key: text for key, text in self.options(bucket).items() if text}

    def store(self, bucket: str) -> ObjectStore:
        """Return obstore's store of a bucket; nothing is asked of it yet.

        Raises:
            NotInstalled: The package `obstore` is missing.
        """
        options = self.given_options(bucket)
        client = {"allow_http": options.pop("allow_http", "") == "true", "timeout": "60s"}
        try:
            from obstore import store
        except ImportError as missing:
            what = f"reading {self.schemes[0]}://{bucket} without Spark"
            raise NotInstalled.of(missing, what, self.name) from missing
        made: ObjectStore = getattr(store, self.store_class)(
            self.bucket_name(bucket), config=options, client_options=client
        )
        return made

    def user(self, key: str) -> str:
        """Return a setting of Hadoop that the user gave; empty if there is none."""
        return self.conf.get(f"spark.hadoop.{key}", "")
