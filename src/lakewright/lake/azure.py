"""Azure Blob Storage, and Data Lake Storage Gen2: Hadoop's file system is `abfs`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lakewright.errors import SpecError
from lakewright.lake.store_kind import StoreKind
from lakewright.spec.models.storage import AzureStorage, CloudCredentials

_ACCOUNT = "fs.azure.account."
_OAUTH = f"{_ACCOUNT}oauth2."
_PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2."


class _Application(NamedTuple):
    """An application that signs in: by a secret or a token, or by the machine if it has neither."""

    tenant: str
    client: str
    secret: str = ""
    token_file: str = ""


@dataclass(frozen=True)
class Azure(StoreKind):
    """Azure; a bucket is a container with its account, as `lake@acme.dfs.core.windows.net`.

    Attributes:
        settings: The section of the project; the defaults if it declares none.
    """

    settings: AzureStorage = field(default_factory=AzureStorage)

    name = "azure"
    title = "Azure"
    schemes = ("abfss", "abfs")
    default_log_store = "io.delta.storage.AzureLogStore"
    store_class = "AzureStore"

    @property
    def endpoint_url(self) -> str:
        """The URL of an emulator; empty for Azure."""
        return self.settings.endpoint_url.rstrip("/")

    @property
    def account_key(self) -> str:
        """The key of the account; empty if an application or the machine signs in."""
        if self.settings.credentials is CloudCredentials.STATIC:
            return self.settings.account_key
        names = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY")
        return next((self.environ[name] for name in names if self.environ.get(name)), "")

    @cached_property
    def application(self) -> _Application:
        """The application that signs in if there is no key of the account."""
        if self.settings.credentials is CloudCredentials.STATIC:
            declared = self.settings
            return _Application(declared.tenant_id, declared.client_id, declared.client_secret)
        names = ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET", "FEDERATED_TOKEN_FILE")
        return _Application(*(self.environ.get(f"AZURE_{name}", "") for name in names))

    def hadoop_conf(self) -> dict[str, str]:
        """Return Hadoop's settings of the file system."""
        return {
            # The default, 30, waits for ten minutes for a store that does not answer.
            "fs.azure.io.retry.max.retries": "8",
            **self._signing_in(),
            **self._emulator(),
        }

    def spark_conf(self) -> dict[str, str]:
        """Return the settings of a Spark session; those that the user gave are left out."""
        # Spark shows its settings to users of its page; it does not take the key of an account for a secret.
        hidden = {"spark.redaction.regex": "(?i)secret|password|token|access[.]?key|account[.]key"}
        return {key: text for key, text in hidden.items() if key not in self.conf} | super().spark_conf()

    def _signing_in(self) -> dict[str, str]:
        if any(key.startswith(f"spark.hadoop.{_ACCOUNT}") for key in self.conf):
            return {}  # the user says how, maybe for each account
        if self.account_key:
            return {f"{_ACCOUNT}auth.type": "SharedKey", f"{_ACCOUNT}key": self.account_key}
        tenant, client, secret, token_file = self.application
        common = {f"{_ACCOUNT}auth.type": "OAuth", f"{_OAUTH}client.id": client}
        if secret:
            return {
                **common,
                f"{_ACCOUNT}oauth.provider.type": f"{_PROVIDERS}ClientCredsTokenProvider",
                f"{_OAUTH}client.endpoint": f"https://login.microsoftonline.com/{tenant}/oauth2/token",
                f"{_OAUTH}client.secret": secret,
            }
        kind = "WorkloadIdentityTokenProvider" if token_file else "MsiTokenProvider"
        return {
            **common,
            f"{_ACCOUNT}oauth.provider.type": f"{_PROVIDERS}{kind}",
            f"{_OAUTH}msi.tenant": tenant,
            f"{_OAUTH}token.file": token_file,
        }

    def _emulator(self) -> dict[str, str]:
        if not self.endpoint_url:
            return {}
        scheme, _, address = self.endpoint_url.partition("://")
        # Emulators have the interface of Blob Storage alone, without folders.
        settings = {
            "fs.azure.abfs.endpoint": address,
            "fs.azure.account.hns.enabled": "false",
            "fs.azure.fns.account.service.type": "BLOB",
        }
        if scheme == "https":
            return settings
        return settings | {
            "fs.azure.always.use.https": "false",
            # The default client does nothing but HTTPS, and so does the file system of the scheme.
            "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
            "fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
            "fs.AbstractFileSystem.abfss.impl": "org.apache.hadoop.fs.azurebfs.Abfs",
        }

    def options(self, bucket: str) -> dict[str, str]:
        """Return the settings for the `deltalake` package.

        Raises:
            SpecError: The location names no account.
        """
        _, host = _container(bucket)
        account = host.partition(".")[0]
        key = self.user(f"{_ACCOUNT}key.{host}") or self.account_key
        found = {
            "azure_storage_account_name": account,
            "azure_storage_endpoint": f"{self.endpoint_url}/{account}" if self.endpoint_url else "",
            "allow_http": "true" if self.endpoint_url.startswith("http://") else "",
        }
        if key:
            return found | {"azure_storage_account_key": key}
        tenant, client, secret, token_file = self.application
        return found | {
            "azure_tenant_id": tenant,
            "azure_client_id": client,
            "azure_client_secret": secret,
            "azure_federated_token_file": token_file,
        }

    def bucket_name(self, bucket: str) -> str:
        """Return the name of a container, without its account."""
        return _container(bucket)[0]


def _container(bucket: str) -> tuple[str, str]:
    container, _, host = bucket.partition("@")
    if not (container and host):
        raise SpecError.of(
            f"abfss://{bucket} names no container and account",
            remedy="Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/….",
        )
    return container, host
