"""Names of secrets, and passwords in URLs."""

from __future__ import annotations

import pytest

from lakewright.spec.expressions.secrets import credentials_in, is_secret_name


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *(
            (name, True)
            for name in (
                "password",
                "PGPASSWORD",
                "jdbcPassword",
                "api_key",
                "spark.hadoop.fs.s3a.secret.key",
            )
        ),
        *((name, True) for name in ("AWS_SESSION_TOKEN", "secretValue", "tokens", "private-key")),
        *(
            (name, False)
            for name in ("keyspace", "monkey", "primary_key", "businessKeys", "tokenizer", "path", "")
        ),
    ],
)
def test_names_tell_secrets(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


def test_passwords_in_urls_are_found() -> None:
    assert credentials_in("a https://u:p%40ss@h/x and s3a://bucket/key@x, mailto:a@b") == {"p%40ss"}
