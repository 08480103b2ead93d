"""Each kind of object store gives Spark and Python the same place and the same credentials."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from lakewright.errors import NotInstalled, SpecError
from lakewright.lake.object_storage import KINDS, ObjectStorage, check_stores
from lakewright.lake.paths import split_url, store_of
from lakewright.lake.storage_errors import store_fault
from lakewright.spark import releases
from lakewright.spark.releases import RELEASES, store_jars
from lakewright.spec.models.storage import StorageSettings

LAKES = {
    "s3": "s3a://lake/shop",
    "azure": "abfss://lake@acme.dfs.core.windows.net/shop",
    "gcs": "gs://lake/shop",
}
ACCOUNT = "spark.hadoop.fs.azure.account."


def storage(kind: str, section: dict[str, Any] | None = None, **given: Any) -> ObjectStorage:
    settings = StorageSettings.model_validate({} if section is None else {kind: section})
    return ObjectStorage(settings, given.get("environ", {}), given.get("conf", {}), frozenset({kind}))


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        *((location, kind) for kind, location in LAKES.items()),
        ("S3N://lake", "s3"),
        ("abfs://lake@acme.dfs.core.windows.net", "azure"),
        ("hdfs://lake/x", None),
        ("gs:/x", None),
        ("/lake/gs://x", None),
    ],
)
def test_a_location_is_in_a_kind_of_store_by_its_scheme(location: str, kind: str | None) -> None:
    assert store_of(location) == kind


def test_each_kind_of_store_is_found_by_each_of_its_schemes() -> None:
    assert {kind.name: {store_of(f"{each}://x") for each in kind.schemes} for kind in KINDS} == {
        kind: {kind} for kind in LAKES
    }


CASES: dict[str, tuple[str, dict[str, Any] | None, dict[str, str], dict[str, str], dict[str, str]]] = {
    "the key of an account": (
        "azure",
        {"credentials": "static", "account_key": "hush"},
        {},
        {f"{ACCOUNT}auth.type": "SharedKey", f"{ACCOUNT}key": "hush"},
        {"azure_storage_account_name": "acme", "azure_storage_account_key": "hush"},
    ),
    "the key of an account in the environment": (
        "azure",
        None,
        {"AZURE_STORAGE_ACCOUNT_KEY": "hush", "AZURE_CLIENT_SECRET": "other"},
        {f"{ACCOUNT}auth.type": "SharedKey", f"{ACCOUNT}key": "hush"},
        {"azure_storage_account_name": "acme", "azure_storage_account_key": "hush"},
    ),
    "an application": (
        "azure",
        {"credentials": "static", "tenant_id": "t", "client_id": "c", "client_secret": "hush"},
        {},
        {
            f"{ACCOUNT}auth.type": "OAuth",
            f"{ACCOUNT}oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
            f"{ACCOUNT}oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
            f"{ACCOUNT}oauth2.client.id": "c",
            f"{ACCOUNT}oauth2.client.secret": "hush",
        },
        {
            "azure_storage_account_name": "acme",
            "azure_tenant_id": "t",
            "azure_client_id": "c",
            "azure_client_secret": "hush",
        },
    ),
    "a workload": (
        "azure",
        {},
        {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_FEDERATED_TOKEN_FILE": "/token"},
        {
            f"{ACCOUNT}auth.type": "OAuth",
            f"{ACCOUNT}oauth.provider.type": (
                "org.apache.hadoop.fs.azurebfs.oauth2.WorkloadIdentityTokenProvider"
            ),
            f"{ACCOUNT}oauth2.msi.tenant": "t",
            f"{ACCOUNT}oauth2.client.id": "c",
            f"{ACCOUNT}oauth2.token.file": "/token",
        },
        {
            "azure_storage_account_name": "acme",
            "azure_tenant_id": "t",
            "azure_client_id": "c",
            "azure_federated_token_file": "/token",
        },
    ),
    "the identity of the machine": (
        "azure",
        None,
        {},
        {
            f"{ACCOUNT}auth.type": "OAuth",
            f"{ACCOUNT}oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider",
        },
        {"azure_storage_account_name": "acme"},
    ),
    "a key file": (
        "gcs",
        {"credentials": "static", "key_file": "/key.json"},
        {},
        {
            "spark.hadoop.fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/key.json",
        },
        {"google_service_account": "/key.json"},
    ),
    "a key file in the environment": (
        "gcs",
        None,
        {"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"},
        {"spark.hadoop.fs.gs.auth.type": "APPLICATION_DEFAULT"},
        {"google_application_credentials": "/key.json"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_spark_and_python_sign_in_alike(case: str) -> None:
    kind, section, environ, conf, options = CASES[case]
    found = storage(kind, section, environ=environ)
    signing = {key: text for key, text in found.spark_conf().items() if ".account." in key or ".auth." in key}
    assert signing == conf
    assert found.options(LAKES[kind]) == options


def test_an_emulator_is_reached_over_plain_http_by_both() -> None:
    azure = storage("azure", {"endpoint_url": "http://127.0.0.1:10000"})
    assert azure.options(LAKES["azure"])["azure_storage_endpoint"] == "http://127.0.0.1:10000/acme"
    assert azure.options(LAKES["azure"])["allow_http"] == "true"
    conf = azure.spark_conf()
    assert conf["spark.hadoop.fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    assert conf["spark.hadoop.fs.azure.always.use.https"] == "false"
    google = storage("gcs", {"endpoint_url": "http://127.0.0.1:4443/"})
    key = json.loads(google.options(LAKES["gcs"])["google_service_account_key"])
    assert (key["gcs_base_url"], key["disable_oauth"]) == ("http://127.0.0.1:4443", True)
    assert google.spark_conf()["spark.hadoop.fs.gs.storage.root.url"] == "http://127.0.0.1:4443/"
    assert google.spark_conf()["spark.hadoop.fs.gs.auth.type"] == "UNAUTHENTICATED"


def test_a_user_s_settings_of_spark_are_not_replaced() -> None:
    conf = {f"{ACCOUNT}key.acme.dfs.core.windows.net": "hush", "spark.hadoop.fs.gs.auth.type": "USER"}
    azure = storage("azure", conf=conf)
    assert not [key for key in azure.spark_conf() if key.startswith(ACCOUNT)]
    assert azure.options(LAKES["azure"])["azure_storage_account_key"] == "hush"
    assert "spark.hadoop.fs.gs.auth.type" not in storage("gcs", conf=conf).spark_conf()


def test_spark_commits_by_a_log_store_that_replaces_no_commit() -> None:
    found = {kind: storage(kind).spark_conf() for kind in LAKES}
    assert found["azure"]["spark.delta.logStore.abfss.impl"] == "io.delta.storage.AzureLogStore"
    assert found["gcs"]["spark.delta.logStore.gs.impl"] == "io.delta.storage.GCSLogStore"
    assert found["s3"]["spark.delta.logStore.s3a.impl"] == "io.lakewright.storage.PutIfAbsentLogStore"


@pytest.mark.parametrize(
    ("section", "secrets"),
    [
        ({"azure": {"credentials": "static", "account_key": "k"}}, {"k"}),
        (
            {
                "azure": {
                    "credentials": "static",
                    "tenant_id": "t",
                    "client_id": "c",
                    "client_secret": "s",
                }
            },
            {"s"},
        ),
        ({"gcs": {"credentials": "static", "key_file": "/key.json"}}, set()),
        (
            {
                "s3": {"credentials": "static", "access_key": "a", "secret_key": "s"},
                "azure": {"credentials": "static", "account_key": "k"},
            },
            {"s", "k"},
        ),
    ],
)
def test_secrets_of_all_sections_are_hidden(section: dict[str, Any], secrets: set[str]) -> None:
    assert StorageSettings.model_validate(section).secrets == secrets


def test_spark_s_page_hides_the_key_of_an_account() -> None:
    assert "account[.]key" in storage("azure").spark_conf()["spark.redaction.regex"]


@pytest.mark.parametrize(
    "section",
    [
        {"azure": {"credentials": "static"}},
        {"azure": {"account_key": "k"}},
        {"azure": {"credentials": "static", "account_key": "k", "client_id": "c"}},
        {"azure": {"credentials": "static", "tenant_id": "t", "client_id": "c"}},
        {"azure": {"endpoint_url": "127.0.0.1:10000"}},
        {"gcs": {"credentials": "static"}},
        {"gcs": {"key_file": "/key.json"}},
        {"gcs": {"credentials": "static", "key_file": "/k", "endpoint_url": "http://127.0.0.1:4443"}},
    ],
)
def test_sections_that_contradict_themselves_are_refused(section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StorageSettings.model_validate(section)


def test_a_location_without_an_account_is_refused() -> None:
    with pytest.raises(SpecError, match="names no container and account"):
        storage("azure").at("abfss://lake/shop")


@pytest.mark.parametrize("kind", LAKES)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(NotInstalled, match="needs the Python package obstore") as raised:
        storage(kind).at(LAKES[kind])
    assert f"lakewright[{kind}]" in str(raised.value.remedy)


@pytest.mark.parametrize("kind", LAKES)
def test_a_bucket_is_opened_by_its_scheme_and_name_once(kind: str) -> None:
    found = storage(kind, environ={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"})
    bucket, key = found.at(LAKES[kind])
    assert key == "shop"
    assert bucket.url.endswith(f"//{split_url(LAKES[kind])[1]}")
    assert found.at(f"{LAKES[kind]}/more")[0] is bucket


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.spark)
def test_a_store_whose_jars_do_not_fit_spark_is_refused_before_anything_is_claimed(
    release: releases.Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("lakewright.lake.object_storage.installed_release", lambda: release)
    for kind in KINDS:
        if store_jars(release, kind.name):
            check_stores(storage(kind.name), "/lake", tmp_path)
            continue
        with pytest.raises(SpecError, match=f"{kind.title} needs a newer Spark"):
            check_stores(storage(kind.name), "/lake", tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<Code>ContainerNotFound</Code>", "there is no such bucket (ContainerNotFound)"),
        (
            "<Code>AuthorizationPermissionMismatch</Code>",
            "access is denied (AuthorizationPermissionMismatch)",
        ),
        ("<Code>AuthenticationFailed</Code>", "the credentials are refused (AuthenticationFailed)"),
        ('{"error":"invalid_grant"}', "the credentials are refused (invalid_grant)"),
        ("AADSTS7000215: Invalid client secret", "the credentials are refused (AADSTS7000215)"),
        (
            "Your default credentials were not found",
            "no credentials were found in the project, the environment or the role of this machine",
        ),
    ],
)
def test_the_codes_of_each_store_have_words(text: str, reason: str) -> None:
    assert store_fault(text).reason == reason
