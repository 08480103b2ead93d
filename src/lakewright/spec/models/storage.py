"""The `storage:` section: how the object stores that hold the lake are reached."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, model_validator

from lakewright.spec.models.base import Lower, SnakeModel, inconsistent


class Credentials(StrEnum):
    """Where the credentials of S3 come from."""

    ENVIRONMENT = "environment"
    PROFILE = "profile"
    STATIC = "static"


class _Store(SnakeModel):
    """A kind of object store."""

    secret_keys: ClassVar[tuple[str, ...]] = ()

    @property
    def secrets(self) -> frozenset[str]:
        """The values that must not appear in logs, records and pages."""
        return frozenset(getattr(self, key) for key in self.secret_keys) - {""}


class S3Storage(_Store):
    """Amazon S3, or a store with the same interface."""

    secret_keys = ("secret_key", "session_token")

    endpoint_url: str = Field(
        default="",
        pattern=r"^(https?://.+)?$",
        description="URL of the store, such as `http://127.0.0.1:9000`; default: Amazon's.",
    )
    region: str = Field(default="", description="Region; default: AWS_REGION, otherwise us-east-1.")
    path_style: bool | None = Field(
        default=None,
        description="Whether the bucket is in the URL's path; default: true with an endpoint_url.",
    )
    credentials: Lower[Credentials] = Field(
        default=Credentials.ENVIRONMENT,
        description="Those of `AWS_…` variables or else of the machine's role, a profile, or access_key "
        "and secret_key.",
    )
    profile: str = Field(default="", description="Name of the profile in ~/.aws/credentials.")
    access_key: str = Field(default="", description="Access key of static credentials.")
    secret_key: str = Field(default="", description="Secret key.")
    session_token: str = Field(default="", description="Session token of temporary static credentials.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        is_static = self.credentials is Credentials.STATIC
        if is_static and not (self.access_key and self.secret_key):
            raise inconsistent("static credentials need access_key and secret_key")
        if not is_static and (self.access_key or self.secret_key or self.session_token):
            raise inconsistent("access_key, secret_key and session_token need `credentials: static`")
        if self.credentials is Credentials.PROFILE and not self.profile:
            raise inconsistent("`credentials: profile` needs the name of the profile")
        if self.credentials is not Credentials.PROFILE and self.profile:
            raise inconsistent("profile needs `credentials: profile`")
        return self


class CloudCredentials(StrEnum):
    """Where the credentials of Azure and Google come from."""

    ENVIRONMENT = "environment"
    STATIC = "static"


class AzureStorage(_Store):
    """Azure Blob Storage, with or without the hierarchical namespace of Data Lake Storage Gen2."""

    secret_keys = ("account_key", "client_secret")

    endpoint_url: str = Field(
        default="",
        pattern=r"^(https?://[^/]+:\d+/?)?$",
        description="URL of an emulator.",
    )
    credentials: Lower[CloudCredentials] = Field(
        default=CloudCredentials.ENVIRONMENT,
        description="`environment` is AZURE_STORAGE_ACCOUNT_KEY; or AZURE_TENANT_ID and AZURE_CLIENT_ID, "
        "with AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE; otherwise the machine's managed identity. "
        "`static` is account_key, or tenant_id, client_id and client_secret.",
    )
    account_key: str = Field(default="", description="Key of the account.")
    tenant_id: str = Field(default="", description="Tenant of the application that signs in.")
    client_id: str = Field(default="", description="Id of the application.")
    client_secret: str = Field(default="", description="Secret of the application.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        application = (self.tenant_id, self.client_id, self.client_secret)
        is_static = self.credentials is CloudCredentials.STATIC
        is_one = all(application) if not self.account_key else not any(application)
        if is_static and not is_one:
            raise inconsistent(
                "static credentials are either account_key, or tenant_id, client_id and client_secret"
            )
        if not is_static and (self.account_key or any(application)):
            raise inconsistent(
                "account_key, tenant_id, client_id and client_secret need `credentials: static`"
            )
        return self


class GoogleStorage(_Store):
    """Google Cloud Storage. The key of static credentials stays in its file."""

    endpoint_url: str = Field(
        default="",
        pattern=r"^(https?://.+)?$",
        description="URL of an emulator.",
    )
    credentials: Lower[CloudCredentials] = Field(
        default=CloudCredentials.ENVIRONMENT,
        description="`environment` is the file named by GOOGLE_APPLICATION_CREDENTIALS, or gcloud's login, "
        "otherwise the machine's service account; `static` is key_file.",
    )
    key_file: str = Field(
        default="", description="Key file of a service account, on each machine that runs Spark."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.credentials is CloudCredentials.STATIC) != bool(self.key_file):
            raise inconsistent("`credentials: static` and key_file need each other")
        if self.endpoint_url and self.key_file:
            raise inconsistent("an endpoint_url takes no credentials")
        return self


class StorageSettings(SnakeModel):
    """How object stores are reached: by Spark, and by what runs without it."""

    s3: S3Storage | None = Field(default=None, description="S3, for `s3://`.")
    azure: AzureStorage | None = Field(
        default=None,
        description="Azure, for `abfss://`.",
    )
    gcs: GoogleStorage | None = Field(
        default=None,
        description="Google Cloud Storage, for `gs://`.",
    )
    single_driver: bool = Field(
        default=False,
        description="Whether only one process at a time writes to the lake.",
    )

    @property
    def declared(self) -> dict[str, S3Storage | AzureStorage | GoogleStorage]:
        """The stores that the project declares, by the names of their sections."""
        found = {"s3": self.s3, "azure": self.azure, "gcs": self.gcs}
        return {name: section for name, section in found.items() if section is not None}

    @property
    def secrets(self) -> frozenset[str]:
        """The values that must not appear in logs, records and pages."""
        return frozenset[str]().union(*(section.secrets for section in self.declared.values()))
