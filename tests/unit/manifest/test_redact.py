"""Secrets never get into records, logs, errors or pages."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.manifest.payload import foreign_payload
from lakewright.manifest.redaction import Redactor
from lakewright.spec.expressions.secrets import is_secret_name


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("PGPASSWORD", True),
        ("db_password", True),
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_SESSION_TOKEN", True),
        ("azureAccountKey", True),
        ("spark.hadoop.fs.azure.account.key", True),
        ("spark.hadoop.fs.azure.account.oauth2.client.secret", True),
        ("GITHUB_TOKEN", True),
        ("sslkeypassphrase", False),
        ("ssl_key_passphrase", True),
        ("APIKEY", True),
        ("clientSecret", True),
        ("keyboard", False),
        ("monkey", False),
        ("spark.sql.shuffle.partitions", False),
        ("HOME", False),
        ("keytab_path", False),
    ],
)
def test_entries_are_secret_by_their_names(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jdbc:postgresql://ann:pw@db:5432/x refused", "jdbc:postgresql://***@db:5432/x refused"),
        ("https://token@github.com/x", "https://***@github.com/x"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("abfss://lake@acme.dfs.core.windows.net/x", "abfss://lake@acme.dfs.core.windows.net/x"),
        ("abfs://me:pw@acme.dfs.core.windows.net/x", "abfs://***@acme.dfs.core.windows.net/x"),
        ("xabfs://token@host/x", "xabfs://***@host/x"),
        ("file:///lake/x@2", "file:///lake/x@2"),
        ("password=hunter2;ssl=true", "password=***;ssl=true"),
        ("https://x.blob/y?sv=1&sig=AbC%2B&se=2", "https://x.blob/y?sv=1&sig=***&se=2"),
        ("fs.s3a.secret.key = abc", "fs.s3a.secret.key = abc"),
        ("accountKey='a b'", "accountKey=***"),
        ("type job token=<token> --resume", "type job token=<token> --resume"),
        ("token=<a>bc", "token=***"),
        ("duplicate key=42 in column id", "duplicate key=42 in column id"),
        ("no secret here", "no secret here"),
    ],
)
def test_credentials_in_urls_and_pairs_are_hidden(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


SECRET = "p@ss/w rd+\"1'\\é"


@pytest.mark.parametrize(
    "spelling",
    [SECRET, quote(SECRET, safe=""), repr(SECRET)[1:-1], SECRET.replace("\\", "\\\\").replace('"', '\\"')],
)
def test_known_secrets_are_hidden_in_every_spelling(spelling: str) -> None:
    redactor = Redactor.of({"DB_PASSWORD": SECRET, "HOME": "/home/ann"})
    assert redactor.text(f"before {spelling} after /home/ann") == "before *** after /home/ann"


def test_secrets_added_later_are_hidden_from_then_on() -> None:
    met: set[str] = set()
    redactor = Redactor(frozenset({"hunter22"}), met)
    assert redactor.text("hunter22 correct-horse") == "*** correct-horse"
    met.add("correct-horse")
    assert redactor.text("hunter22 correct-horse") == "*** ***"


def test_a_secret_that_is_a_key_of_ours_hides_no_key_at_any_depth() -> None:
    redactor = Redactor(frozenset({"status"}))
    value = {"status": "is status", "runs": [{"status": ("status", 1, None)}]}
    assert redactor.value(value) == {"status": "is ***", "runs": [{"status": ["***", 1, None]}]}


def test_secrets_are_hidden_in_other_programs_keys_and_values_at_every_depth() -> None:
    redactor = Redactor(frozenset({"hunter22"}))
    value = {"a hunter22": [{"hunter22": ("hunter22", 1, None)}, "xhunter22x"], "in": {"password": "pw"}}
    assert redactor.foreign(value) == {
        "a ***": [{"***": ["***", 1, None]}, "x***x"],
        "in": {"password": "***"},
    }
    assert foreign_payload({"hunter22": {"hunter22": 1}}, redactor)["data"] == {"***": {"***": 1}}


def test_entries_with_a_secret_name_are_hidden_entirely() -> None:
    entries = {"db.password": "x", "token": "", "day": "2022-01-01", "url": "s3://a:b@c/d"}
    assert Redactor().entries(entries) == {
        "db.password": "***",
        "token": "",
        "day": "2022-01-01",
        "url": "s3://***@c/d",
    }


@pytest.mark.parametrize("secret", ["true", "no", "ab", "", "NULL"])
def test_values_that_cannot_be_secrets_are_not_hidden(secret: str) -> None:
    text = f"set to {secret} abc true null"
    assert Redactor.of({"some.key": secret}).text(text) == text


def test_short_secrets_are_hidden_only_as_whole_words() -> None:
    assert Redactor(frozenset({"cat"})).text("cat, category and cat.") == "***, category and ***."


def test_of_two_overlapping_secrets_the_longer_is_hidden() -> None:
    assert Redactor(frozenset({"abcdefgh", "abcdefgh-ijkl"})).text("abcdefgh-ijkl") == "***"


@given(st.text(min_size=8, max_size=20).filter(lambda s: len(s.strip()) >= 8), st.text(), st.text())
def test_a_long_secret_never_survives(secret: str, before: str, after: str) -> None:
    assert secret.strip() not in Redactor(frozenset({secret})).text(before + secret + after).replace(
        "***", "\0"
    )


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a.",
        "a:",
        "://",
        "x://a:",
        "password",
        "password ",
        "password='",
        "secret.",
        'key="',
        "@",
        "=",
        " ",
    ],
)
def test_redacting_takes_time_linear_in_the_length_of_the_text(unit: str) -> None:
    text = "x://" + unit * (200_000 // len(unit)) + "="
    begun = time.process_time()
    Redactor(frozenset({"hunter22", "aab"})).text(text)
    assert time.process_time() - begun < 2
