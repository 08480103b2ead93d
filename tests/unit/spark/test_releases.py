from importlib.metadata import version

import pytest

from lakewright.errors import SparkUnavailable
from lakewright.spark.releases import (
    RELEASES,
    Release,
    check_release,
    delta_jars,
    installed_release,
    store_jars,
)

EACH = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.spark)


@pytest.mark.parametrize(
    ("found", "release"), [("4.0.1", "4.0"), ("4.0.12", "4.0"), ("4.1.0", "4.1"), ("4.2.0-amzn-1", "4.2")]
)
def test_a_version_of_spark_belongs_to_a_release(found: str, release: str) -> None:
    assert check_release(found).spark == release


@pytest.mark.parametrize("found", ["3.5.6", "4.0.0", "4.3.0", "5.0.1", "4", "unknown"])
def test_other_versions_are_refused_with_those_that_are_supported(found: str) -> None:
    with pytest.raises(SparkUnavailable) as caught:
        check_release(found)
    assert caught.value.details == {"version": found, "supported": ["4.0", "4.1", "4.2"]}


def test_the_installed_release_is_that_of_pyspark() -> None:
    assert version("pyspark").startswith(f"{installed_release().spark}.")


@EACH
def test_the_jars_of_delta_are_of_the_delta_that_python_has(release: Release) -> None:
    jars = delta_jars(release)
    assert {jar.version for jar in jars if jar.group == "io.delta"} == {version("delta-spark")}
    assert f"delta-spark_{release.spark}_2.13" in {jar.artifact for jar in jars}


@EACH
def test_the_jars_for_s3_are_of_one_hadoop_and_one_sdk(release: Release) -> None:
    jars = store_jars(release, "s3")
    assert len(jars) == len({jar.artifact for jar in jars}) >= 30
    assert sum(jar.artifact == "hadoop-aws" for jar in jars) == 1
    assert len({jar.version for jar in jars if jar.group == "software.amazon.awssdk"}) == 1
