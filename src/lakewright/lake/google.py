"""Google Cloud Storage: Hadoop's file system is Google's connector."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from lakewright.lake.store_kind import StoreKind
from lakewright.spec.models.storage import GoogleStorage


@dataclass(frozen=True)
class Google(StoreKind):
    """Google Cloud Storage.

    Attributes:
        settings: The section of the project; the defaults if it declares none.
    """

    settings: GoogleStorage = field(default_factory=GoogleStorage)

    name = "gcs"
    title = "Google Cloud Storage"
    schemes = ("gs",)
    default_log_store = "io.delta.storage.GCSLogStore"
    store_class = "GCSStore"

    @property
    def endpoint_url(self) -> str:
        """The URL of an emulator; empty for Google's own."""
        return self.settings.endpoint_url.rstrip("/")

    def hadoop_conf(self) -> dict[str, str]:
        """Return Hadoop's settings of the file system."""
        return {
            # Hadoop's defaults name a connector of its own, which knows no other endpoint than Google's.
            "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
            "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
            # Hadoop's default is `64m`, which Google's connector does not read.
            "fs.gs.block.size": str(64 << 20),
            "fs.gs.storage.root.url": f"{self.endpoint_url}/" if self.endpoint_url else "",
            "fs.gs.auth.type": self._auth_type,
            "fs.gs.auth.service.account.json.keyfile": self.settings.key_file,
        }

    @property
    def _auth_type(self) -> str:
        if self.endpoint_url:
            return "UNAUTHENTICATED"
        return "SERVICE_ACCOUNT_JSON_KEYFILE" if self.settings.key_file else "APPLICATION_DEFAULT"

    def options(self, bucket: str) -> dict[str, str]:
        """Return the settings for the `deltalake` package."""
        if self.endpoint_url:
            # Its client takes another endpoint from a key alone.
            unsigned = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
            key = {"gcs_base_url": self.endpoint_url, "disable_oauth": True, **unsigned}
            is_plain = self.endpoint_url.startswith("http://")
            return {"google_service_account_key": json.dumps(key), "allow_http": "true" if is_plain else ""}
        return {
            "google_service_account": self.settings.key_file
            or self.user("fs.gs.auth.service.account.json.keyfile"),
            "google_application_credentials": self.environ.get("GOOGLE_APPLICATION_CREDENTIALS", ""),
        }
