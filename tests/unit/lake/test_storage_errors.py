"""B5: what a store says in its client's words is told in ours, with the place and what to do."""

from __future__ import annotations

import pytest

from lakewright.lake.object_storage import ObjectStorage
from lakewright.lake.storage_errors import store_fault

KERNEL = (
    "Kernel error -> Operation not supported\n    \x1b[31m↳\x1b[0m an error while loading credentials"
    "\n    \x1b[31m↳\x1b[0m failed to load IMDS session token"
)
ROLE = (
    "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 6.05ms - Server "
    "returned non-2xx status code: 403 Forbidden: denied\n\nDebug source:\nGeneric { store: x }"
)
REFUSED = (
    "Client error with status 403 Forbidden: <Error><Code>{}</Code><Message>No: <b>/x</b></Message></Error>"
)


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        (KERNEL, "no credentials were found", "Set AWS_ACCESS_KEY_ID"),
        (ROLE, "no credentials were found", "Set AWS_ACCESS_KEY_ID"),
        (REFUSED.format("AccessDenied"), "access is denied (AccessDenied)", "Give the credentials the right"),
        (REFUSED.format("InvalidAccessKeyId"), "are refused (InvalidAccessKeyId)", "Correct the credentials"),
        (REFUSED.format("ExpiredToken"), "have expired (ExpiredToken)", "Renew the credentials"),
        ("<Code>NoSuchBucket</Code>", "there is no such bucket (NoSuchBucket)", "Create the bucket"),
        ("error sending request for url (http://x:9/): dns error", "does not answer", "Check the network"),
        (REFUSED.format("Odd"), "access is denied", "Give the credentials the right"),
        ("<Code>SlowDown</Code><Message>Later</Message>", "SlowDown: Later", "Check the store"),
    ],
)
def test_a_fault_of_a_store_is_told_in_our_words(text: str, reason: str, remedy: str) -> None:
    found = store_fault(text)
    assert reason in found.reason
    assert found.remedy.startswith(remedy)
    assert found.remedy.endswith("then run again.")
    assert not {"\n", "\x1b", "↳"} & set(found.reason)


def test_a_fault_names_the_object_and_the_store() -> None:
    bucket, _ = ObjectStorage(environ={"AWS_ENDPOINT_URL": "http://store:9000"}).at("s3://lake")
    assert bucket.fault(RuntimeError(KERNEL), "bronze/orders", "listed").message.startswith(
        "s3://lake/bronze/orders at http://store:9000 can't be listed: no credentials were found"
    )
