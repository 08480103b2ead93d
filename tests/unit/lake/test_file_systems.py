"""B5: a location whose file system Spark lacks is one clear reason, without Java's stack trace."""

from __future__ import annotations

import pytest

from lakewright.lake.files import missing_file_system

S3A = (
    "An error occurred while calling o55.getFileSystem.\n: java.lang.RuntimeException: "
    "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found\n"
    "\tat org.apache.hadoop.conf.Configuration.getClass(Configuration.java:2747)"
)
GS = 'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "gs"\n\tat x'


@pytest.mark.parametrize(
    ("text", "location", "message", "remedy"),
    [
        (S3A, "s3a://b/lake", "Spark cannot read or write s3a:// locations: its class", "storage: {s3: {}}"),
        (S3A, "", "Spark cannot read or write s3a:// locations: its class", "storage: {s3: {}}"),
        (GS, "", "Spark cannot read or write gs:// locations: no jar has one", "storage: {gcs: {}}"),
        (
            S3A.replace("s3a.S3A", "azurebfs.SecureAzureBlob"),
            "",
            "Spark cannot read or write abfss:// locations: its class",
            "storage: {azure: {}}",
        ),
        (GS.replace("gs", "oss"), "", "Spark cannot read or write oss:// locations: no jar", "spark.jars"),
    ],
)
def test_a_missing_file_system_is_named_with_what_adds_it(
    text: str, location: str, message: str, remedy: str
) -> None:
    found = missing_file_system(text, location)
    assert found is not None
    assert found.message.startswith(message)
    assert remedy in str(found.remedy)
    assert "\n" not in found.message


def test_another_error_is_left_alone() -> None:
    assert missing_file_system("Class org.example.Main not found") is None
