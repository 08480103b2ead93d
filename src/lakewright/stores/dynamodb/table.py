"""Requests to DynamoDB for one table, with retries and Lakewright's errors, and the time of its server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import Any

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from lakewright.errors import LakewrightError, SpecError, StoreUnavailable, UsageError
from lakewright.manifest.store import batched
from lakewright.stores.backend import attempts
from lakewright.stores.dynamodb.rows import Key, Row, key_of, row_of, text
from lakewright.stores.heartbeat import seconds_awake

MOST_READ, MOST_WRITTEN = 100, 25
"""Maximum rows of one request that reads, or that writes without conditions; DynamoDB's limits."""

PATIENCE = 30.0
"""Seconds during which a request that DynamoDB throttles is retried."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row's part in a transaction, as `TransactWriteItems` takes it.

    Attributes:
        key: The key of the row; a transaction changes each row once.
        kind: `Put`, `Update`, `Delete` or `ConditionCheck`.
        arguments: All arguments but the table's name.
        size: Approximate size in bytes.
    """

    key: Key
    kind: str
    arguments: Mapping[str, Any]
    size: int = 0


class Refused(Exception):
    """A transaction failed because rows are not as expected, or conflicted with another transaction.

    Attributes:
        keys: The rows whose conditions did not hold; empty after a conflict.
    """

    def __init__(self, keys: frozenset[Key]) -> None:
        super().__init__("rows are not as expected")
        self.keys = keys


class Table:
    """A DynamoDB table.

    Args:
        name: The name of the table.
        region: The AWS region; by default the one that boto3 finds.
        endpoint_url: The address of DynamoDB; by default that of AWS in the region.
    """

    def __init__(self, name: str, *, region: str | None, endpoint_url: str | None) -> None:
        self.name = name
        self.where = f"the manifest in DynamoDB, table {name} at {endpoint_url or region or 'AWS'},"
        self.clock = ServerClock()
        config = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "max_attempts": 5})
        try:
            # boto3's default session is shared, and creating clients from it is not thread-safe.
            self._client: Any = boto3.session.Session().client(
                "dynamodb", region_name=region, endpoint_url=endpoint_url, config=config
            )
        except (BotoCoreError, ValueError) as error:
            raise translate(error, self.where) from error

    def exists(self) -> bool:
        """Return whether the table exists."""
        return self.ask("describe_table", unless="ResourceNotFoundException", TableName=self.name) is not None

    def ask(self, operation: str, *, unless: str | None = None, **arguments: Any) -> Any:
        """Return the answer to one request, which boto3 retries if it was lost or throttled.

        The answer is None where DynamoDB refuses the request with the code `unless`.

        Raises:
            StoreUnavailable: There is no answer, or DynamoDB refused the request.
        """
        try:
            return self.raw(operation, **arguments)
        except (BotoCoreError, ClientError) as error:
            if unless is not None and code_of(error) == unless:
                return None
            raise translate(error, self.where) from error

    def raw(self, operation: str, **arguments: Any) -> Any:
        """Return the answer to one request; boto3's errors are not converted."""
        asked = self.clock.counter()
        try:
            answer = getattr(self._client, operation)(**arguments)
        except ClientError as error:
            self._observe(error.response, asked)
            raise
        self._observe(answer, asked)
        return answer

    def _observe(self, answer: Mapping[str, Any], asked: float) -> None:
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            self.clock.observe(date, asked=asked, answered=self.clock.counter())

    def get(self, keys: Iterable[Key]) -> dict[Key, Row]:
        """Return the existing rows of these keys in their current state."""
        found: dict[Key, Row] = {}
        for page in batched(dict.fromkeys(keys), MOST_READ):
            found |= {key_of(each): each for each in self._get_page(page)}
        return found

    def _get_page(self, keys: Sequence[Key]) -> Iterator[Row]:
        left = {self.name: {"Keys": [row_of(key) for key in keys], "ConsistentRead": True}}
        for _ in self.attempts():
            answer = self.ask("batch_get_item", RequestItems=left)
            yield from answer["Responses"].get(self.name, ())
            left = answer.get("UnprocessedKeys") or {}
            if not left:
                return

    def query(self, pk: str, prefix: str = "", *, is_descending: bool = False) -> Iterator[Row]:
        """Yield the rows of one partition whose sort key starts with `prefix`, sorted, page by page."""
        request: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": "pk = :pk" + (" AND begins_with(sk, :sk)" if prefix else ""),
            "ExpressionAttributeValues": {":pk": text(pk), **({":sk": text(prefix)} if prefix else {})},
            "ScanIndexForward": not is_descending,
            "ConsistentRead": True,
        }
        while True:
            answer = self.ask("query", **request)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def transact(self, changes: Sequence[Change]) -> None:
        """Apply all changes, or none.

        Raises:
            Refused: A row is not as its change expects, or another transaction changes the same rows.
            StoreUnavailable: There is no answer, DynamoDB refused the request, or it throttled for too long.
        """
        items = [{c.kind: {"TableName": self.name, **c.arguments}} for c in changes]
        for _ in self.attempts():
            try:
                self.raw("transact_write_items", TransactItems=items)
                return
            except ClientError as error:
                reasons = _reasons(error)
                if not reasons:
                    raise translate(error, self.where) from error
                refused = frozenset(
                    c.key for c, r in zip(changes, reasons, strict=True) if r == "ConditionalCheckFailed"
                )
                if refused or "TransactionConflict" in reasons:
                    raise Refused(refused) from error
                if not _TRANSIENT.intersection(reasons):
                    raise translate(error, self.where) from error
            except BotoCoreError as error:
                raise translate(error, self.where) from error

    def put_all(self, rows: Iterable[Row]) -> None:
        """Write rows unconditionally and independently of each other."""
        self._write_all({"PutRequest": {"Item": row}} for row in rows)

    def delete_all(self, keys: Iterable[Key]) -> None:
        """Delete rows independently of each other."""
        self._write_all({"DeleteRequest": {"Key": row_of(key)}} for key in keys)

    def _write_all(self, requests: Iterable[Mapping[str, Any]]) -> None:
        for page in batched(requests, MOST_WRITTEN):
            left: Any = {self.name: page}
            for _ in self.attempts():
                left = self.ask("batch_write_item", RequestItems=left).get("UnprocessedItems")
                if not left:
                    break

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def attempts(self) -> Iterator[None]:
        """Yield once per attempt, with pauses between.

        Raises:
            StoreUnavailable: `PATIENCE` seconds have passed.
        """
        throttled = StoreUnavailable(
            f"{self.where} has throttled requests for {PATIENCE:.0f} s",
            remedy="Give the table more capacity, or let fewer runs write at once.",
        )
        return attempts(PATIENCE, throttled)


def if_absent() -> dict[str, Any]:
    """Return the condition that a row does not exist."""
    return {"ConditionExpression": "attribute_not_exists(pk)"}


def if_equal(attribute: str, value: int) -> dict[str, Any]:
    """Return the condition that a row exists and its attribute equals a number."""
    return {
        "ConditionExpression": "#a = :a",
        "ExpressionAttributeNames": {"#a": attribute},
        "ExpressionAttributeValues": {":a": {"N": str(value)}},
    }


def _reasons(error: ClientError) -> list[str]:
    """Return the reason for each change of a cancelled transaction; none for other errors."""
    if code_of(error) == "TransactionCanceledException":
        return [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", ())]
    return []


_TRANSIENT = {"ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"}


TICK = timedelta(microseconds=1)
"""The least difference between two times: versions of documents are derived from them."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ServerClock:
    """The difference between a server's clock and this machine's counter, narrowed by every answer.

    An answer dated `12:00:05` was given between that second and the next, and between the request and the
    arrival of the answer. So each answer bounds the difference: the first one to half a second, several to a
    few milliseconds.

    Args:
        counter: Counts seconds on this machine, never backwards.
    """

    def __init__(self, counter: Callable[[], float] = seconds_awake) -> None:
        self.counter = counter
        self._lock = Lock()
        self._bounds: tuple[float, float] | None = None
        self._last = LONG_AGO

    def observe(self, date: str, *, asked: float, answered: float) -> None:
        """Narrow the difference by an answer's `Date`.

        Args:
            date: The value of the header.
            asked: The counter when the request was sent.
            answered: The counter when the answer arrived.
        """
        dated = parsedate_to_datetime(date).timestamp()
        low, high = dated - answered, dated + 1 - asked
        with self._lock:
            if self._bounds is not None and low < self._bounds[1] and high > self._bounds[0]:
                low, high = max(low, self._bounds[0]), min(high, self._bounds[1])
            elif self._bounds is not None:
                self._last = LONG_AGO  # the server's clock was set back or forward
            self._bounds = low, high

    def now(self) -> datetime:
        """Return the server's time, in UTC; always later than the one before, unless that clock was set.

        Raises:
            StoreUnavailable: No answer has been dated yet.
        """
        with self._lock:
            if self._bounds is None:
                raise StoreUnavailable(
                    "the time of the manifest's server is unknown: its answers have no Date header"
                )
            estimate = datetime.fromtimestamp(self.counter() + sum(self._bounds) / 2, UTC)
            self._last = max(self._last + TICK, estimate)
            return self._last


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
