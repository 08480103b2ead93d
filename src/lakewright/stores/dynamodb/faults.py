"""What boto3's errors mean for the operator."""

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

__all__ = ["code_of", "translate"]

_CREDENTIALS = (
    "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where AWS gives a role; "
    "DynamoDB Local takes any key."
)


def code_of(error: Exception) -> str:
    """Return DynamoDB's code of an error, or nothing."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else ""


def translate(error: Exception, where: str) -> LakewrightError:
    """Return one of our errors for one of boto3's."""
    first_line = str(error).partition("\n")[0]
    if isinstance(error, NoRegionError):
        return SpecError.of(
            "the manifest in DynamoDB has no region",
            remedy="Set `manifest: {region: …}`, or AWS_DEFAULT_REGION.",
        )
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return StoreUnavailable(f"{where} can't be asked without credentials of AWS", remedy=_CREDENTIALS)
    if isinstance(error, HTTPClientError | exceptions.ConnectionError):
        return StoreUnavailable(
            f"{where} can't be reached: {first_line}",
            remedy="See that `manifest: {region: …, endpoint_url: …}` are right and can be reached.",
        )
    if isinstance(error, BotoCoreError | ValueError):
        return SpecError.of(f"{where} can't be used: {first_line}")
    code = code_of(error)
    if code == "ValidationException" and "size" in first_line:
        return UsageError(f"what is to be written is too large for {where.rstrip(',')}: {first_line}")
    said, remedy = _FAULTS.get(code, ("refuses", None))
    return StoreUnavailable(f"{where} {said}: {first_line}", remedy=remedy)


_FAULTS: Mapping[str, tuple[str, str | None]] = {
    "AccessDeniedException": (
        "may not be used by this identity",
        "Allow it BatchGetItem, BatchWriteItem, ConditionCheckItem, CreateTable, DeleteItem, DescribeTable, "
        "PutItem, Query and UpdateItem on the table and its index.",
    ),
    "ExpiredTokenException": ("takes these credentials no more", "Renew them, then run again."),
    "InvalidSignatureException": ("doesn't take these credentials", _CREDENTIALS),
    "UnrecognizedClientException": ("doesn't take these credentials", _CREDENTIALS),
    "ResourceNotFoundException": ("is gone", "It is made anew when the next command begins."),
    "ProvisionedThroughputExceededException": (
        "has no capacity left",
        "Give the table more capacity, or let fewer runs write at once.",
    ),
    "ThrottlingException": ("turns requests away", "Let fewer runs write at once."),
    "ValidationException": (
        "isn't a table of a manifest, or refuses",
        "Set `manifest: {table: …}` to another name.",
    ),
}
