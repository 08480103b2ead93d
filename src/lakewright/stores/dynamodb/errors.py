"""Conversion of boto3's errors to Lakewright's."""

from __future__ import annotations

from collections.abc import Mapping

from botocore import exceptions
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from lakewright.errors import LakewrightError, SpecError, StoreUnavailable, UsageError

_CREDENTIALS = (
    "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where AWS assigns a role; "
    "DynamoDB Local accepts any key."
)


def code_of(error: Exception) -> str:
    """Return the DynamoDB code of an error, or an empty text."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else ""


def translate(error: Exception, where: str) -> LakewrightError:
    """Convert a boto3 error to one of Lakewright's."""
    first_line = str(error).partition("\n")[0]
    if isinstance(error, NoRegionError):
        return SpecError.of(
            "the manifest in DynamoDB has no region",
            remedy="Set `manifest: {region: …}`, or AWS_DEFAULT_REGION.",
        )
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return StoreUnavailable(f"{where} can't be used without AWS credentials", remedy=_CREDENTIALS)
    if isinstance(error, HTTPClientError | exceptions.ConnectionError):
        return StoreUnavailable(
            f"{where} can't be reached: {first_line}",
            remedy="Check that `manifest: {region: …, endpoint_url: …}` is correct and can be reached.",
        )
    if isinstance(error, BotoCoreError | ValueError):
        return SpecError.of(f"{where} can't be used: {first_line}")
    code = code_of(error)
    if code == "ValidationException" and "size" in first_line:
        return UsageError(f"the write is too large for {where.rstrip(',')}: {first_line}")
    said, remedy = _FAULTS.get(code, ("refused the request", None))
    return StoreUnavailable(f"{where} {said}: {first_line}", remedy=remedy)


_FAULTS: Mapping[str, tuple[str, str | None]] = {
    "AccessDeniedException": (
        "may not be used by this identity",
        "Allow it BatchGetItem, BatchWriteItem, ConditionCheckItem, CreateTable, DeleteItem, DescribeTable, "
        "PutItem, Query and UpdateItem on the table.",
    ),
    "ExpiredTokenException": ("no longer accepts these credentials", "Renew them, then run again."),
    "InvalidSignatureException": ("doesn't accept these credentials", _CREDENTIALS),
    "UnrecognizedClientException": ("doesn't accept these credentials", _CREDENTIALS),
    "ResourceNotFoundException": ("was deleted", "The next command creates it again."),
    "ProvisionedThroughputExceededException": (
        "has no capacity left",
        "Give the table more capacity, or let fewer runs write at once.",
    ),
    "ThrottlingException": ("is throttling requests", "Let fewer runs write at once."),
    "ValidationException": (
        "isn't a table of a manifest, or refused the request",
        "Set `manifest: {table: …}` to another name.",
    ),
}
