"""The `storage:` section: how the object stores that hold the lake are reached."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from lakewright.spec.models.base import SnakeModel, inconsistent, lower

__all__ = ["Credentials", "S3Storage", "StorageSettings"]


class Credentials(StrEnum):
    """Where the credentials of S3 come from."""

    ENVIRONMENT = "environment"
    PROFILE = "profile"
    STATIC = "static"


class S3Storage(SnakeModel):
    """Amazon S3, or a store with the same interface."""

    endpoint_url: str = Field(
        default="",
        pattern=r"^(https?://.+)?$",
        description="URL of the store, such as `http://127.0.0.1:9000`; default: Amazon's, by region.",
    )
    region: str = Field(
        default="", description="Region; default: the variable AWS_REGION, otherwise us-east-1."
    )
    path_style: bool | None = Field(
        default=None,
        description="Whether the bucket is a part of the URL's path instead of its host; "
        "default: yes if there is an endpoint_url.",
    )
    credentials: Annotated[Credentials, BeforeValidator(lower)] = Field(
        default=Credentials.ENVIRONMENT,
        description="Where credentials come from: `environment` (the variables AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, otherwise the role of the machine), `profile` (a profile in ~/.aws) or "
        "`static` (access_key and secret_key).",
    )
    profile: str = Field(default="", description="Name of the profile in ~/.aws/credentials.")
    access_key: str = Field(default="", description="Access key of static credentials.")
    secret_key: str = Field(default="", description="Secret key; take it from a secret, as `$System.getenv`.")
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


class StorageSettings(SnakeModel):
    """How object stores are reached: by Spark, and by what runs without it."""

    s3: S3Storage | None = Field(
        default=None, description="S3, for locations with `s3://`; default: Amazon's, if the lake is there."
    )
    single_driver: bool = Field(
        default=False,
        description="Whether only one process at a time ever writes to the lake. Then a manifest on this "
        "machine and a store without conditional writes are allowed, at your risk.",
    )

    @property
    def secrets(self) -> frozenset[str]:
        """The values that must not appear in logs, records and pages."""
        s3 = self.s3 or S3Storage()
        return frozenset({s3.secret_key, s3.session_token} - {""})
