"""Amazon's DynamoDB Local of the tests' own, on loopback, in memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import boto3
from tests.stores.cluster import free_port

from lakewright.spark.jars import fetch_jars
from lakewright.spark.java import find_java
from lakewright.spark.releases import Jar

# What the server loads of all that `mvn dependency:copy-dependencies` brings for com.amazonaws:DynamoDBLocal.
JARS = (
    Jar(
        "com.amazonaws",
        "DynamoDBLocal",
        "2.6.1",
        "a28d8b4919999b7dee6ffa9fd4e9a08744460657a9bd3e3499e3aad00e1f2cc4",
    ),
    Jar(
        "org.antlr",
        "antlr4-runtime",
        "4.10.1",
        "da66be0c98acfb29bc708300d05f1a3269c40f9984a4cb9251cf2ba1898d1334",
    ),
    Jar(
        "software.amazon.awssdk",
        "auth",
        "2.25.50",
        "98e8736668936a4dfca1263969aaef641037ed40a43bb33544c8571042d8d892",
    ),
    Jar(
        "software.amazon.awssdk",
        "aws-core",
        "2.25.50",
        "6258fe8ca8f75ffb498500c57020496d75861e31b80b5b61bc5809d76236e803",
    ),
    Jar(
        "com.amazonaws",
        "aws-java-sdk-core",
        "1.12.721",
        "6ce2a5f90534dae97bc6a2638cf418deb665274b3b813eca0123616f5b735830",
    ),
    Jar(
        "com.amazonaws",
        "aws-java-sdk-dynamodb",
        "1.12.721",
        "2795a203ac9a11da08bc7c25588904c913b62348f8826880b5b80d3e075f7ecf",
    ),
    Jar(
        "commons-cli",
        "commons-cli",
        "1.6.0",
        "69e1237059acd56f0f8654dcde09d8a1412eee82918bef5564d51f8fb275711b",
    ),
    Jar(
        "org.apache.commons",
        "commons-lang3",
        "3.17.0",
        "6ee731df5c8e5a2976a1ca023b6bb320ea8d3539fbe64c8a1d5cb765127c33b4",
    ),
    Jar(
        "software.amazon.awssdk",
        "dynamodb",
        "2.25.50",
        "5350e8a132d99ac45724fb5f1056dcaa3234d984601c62da43cd94e5ece13ae6",
    ),
    Jar(
        "com.google.guava",
        "guava",
        "33.4.0-jre",
        "b918c98a7e44dbe94ebd9fe3e40cddaadb5a93e6a78eb6008b42df237241e538",
    ),
    Jar(
        "software.amazon.awssdk",
        "identity-spi",
        "2.25.50",
        "4708e42d7498ca0d343d0f755c6856f920b2478f296fbec0950170a2e3ac8071",
    ),
    Jar(
        "com.fasterxml.jackson.core",
        "jackson-annotations",
        "2.12.7",
        "3cacef714a89f3d68b69fa11263afa55a6aa2fdef1fff93ded22caa16b54687c",
    ),
    Jar(
        "com.fasterxml.jackson.core",
        "jackson-core",
        "2.12.7",
        "3987a6a335046e226e56b81d69668fb5a91b155ea7fd96b0851adbb7d4ac1ca6",
    ),
    Jar(
        "com.fasterxml.jackson.core",
        "jackson-databind",
        "2.12.7",
        "4ed50208a764347fb86e79305d3b91c68a5232b22b763214683db07d88b6c687",
    ),
    Jar(
        "com.fasterxml.jackson.datatype",
        "jackson-datatype-jsr310",
        "2.12.7",
        "a8ccf675c7083c052a17f31bfeead65bd9103a6af219f02dfa0e836fa0dfb33d",
    ),
    Jar(
        "org.eclipse.jetty",
        "jetty-http",
        "12.0.14",
        "c0135a68214b74c45de118c52a8b354a02f138622a123ae78f4b4ee631acc625",
    ),
    Jar(
        "org.eclipse.jetty",
        "jetty-io",
        "12.0.14",
        "7e4331e06f6f03a370ad3351f61d5390653423b587e40911d9669f8dcff17509",
    ),
    Jar(
        "org.eclipse.jetty",
        "jetty-server",
        "12.0.14",
        "92d5062919fe4a56242a1c95fe0b533ad4ccab122f8cc1632d6567120e16445f",
    ),
    Jar(
        "org.eclipse.jetty",
        "jetty-util",
        "12.0.14",
        "ab9d69ccf51ee84a39cd9d79ceaf0cd97d7071005c384246e577e573a829f622",
    ),
    Jar(
        "com.almworks.sqlite4java",
        "libsqlite4java-linux-amd64",
        "1.0.392",
        "da3d7d21eef476baf644026e449b392dbd738bf9246fca48ce072987264c3aca",
        "so",
    ),
    Jar(
        "com.almworks.sqlite4java",
        "libsqlite4java-osx",
        "1.0.392",
        "b84122142173f33137c76d05dd6c80cc96f619ead3dc476c12d6ea46ef12dd05",
        "dylib",
    ),
    Jar(
        "org.apache.logging.log4j",
        "log4j-api",
        "2.17.1",
        "b0d8a4c8ab4fb8b1888d0095822703b0e6d4793c419550203da9e69196161de4",
    ),
    Jar(
        "org.apache.logging.log4j",
        "log4j-core",
        "2.17.1",
        "c967f223487980b9364e94a7c7f9a8a01fd3ee7c19bdbf0b0f9f8cb8511f3d41",
    ),
    Jar(
        "software.amazon.awssdk",
        "pinpoint",
        "2.25.50",
        "77e7be8cf51c83d77b9ffd8a0c2fb60e7909e8dbcc783a0c880d88e1baf5484b",
    ),
    Jar(
        "software.amazon.awssdk",
        "regions",
        "2.25.50",
        "1dff144701f0bdc0907753e45aa30724188ac11f7d4d028dee739bdd2836b12c",
    ),
    Jar(
        "software.amazon.awssdk",
        "sdk-core",
        "2.25.50",
        "1a757bd736da4e996c5131f3e1911b3069c4257a70a3c5a20d5783338a0ec366",
    ),
    Jar(
        "org.slf4j", "slf4j-api", "1.7.30", "cdba07964d1bb40a0761485c6b1e8c2f8fd9eb1d19c53928ac0d7f9510105c57"
    ),
    Jar(
        "com.almworks.sqlite4java",
        "sqlite4java",
        "1.0.392",
        "243a64470fda0e86a6fddeb0af4c7aa9426ce84e68cbfe18d75ee5da4b7e0b92",
    ),
    Jar(
        "software.amazon.awssdk",
        "utils",
        "2.25.50",
        "cded735cdabbf7b75727a33ef4a6eee26121182a15b732c07bd241bb8c02e3d1",
    ),
)

PATIENCE = 60.0

REGION = "eu-central-1"


@contextmanager
def running_dynamodb() -> Iterator[str]:
    """Yield the address of a server that is running, and stop it afterwards."""
    jars = fetch_jars(os.environ, JARS)
    port = free_port()
    command = [
        str(find_java(os.environ).executable),
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dsqlite4java.library.path={jars[0].parent}",
        "-cp",
        os.pathsep.join(str(jar) for jar in jars if jar.suffix == ".jar"),
        "com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
        "-inMemory",
        "-disableTelemetry",
        "-port",
        str(port),
    ]
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            url = f"http://127.0.0.1:{port}"
            _await(server, url)
            yield url
        except TimeoutError as error:
            said.seek(0)
            raise RuntimeError(f"DynamoDB Local did not start: {said.read().decode()}") from error
        finally:
            server.terminate()
            server.wait(PATIENCE)


@contextmanager
def empty_table(url: str) -> Iterator[dict[str, str]]:
    """Yield settings of a table that isn't there yet, and remove it afterwards."""
    name = f"lakewright-{uuid4().hex}"
    yield {"table": name, "region": REGION, "endpoint_url": url}
    client = boto3.session.Session().client("dynamodb", region_name=REGION, endpoint_url=url)
    try:
        client.delete_table(TableName=name)
    except client.exceptions.ResourceNotFoundException:
        pass
    finally:
        client.close()


def _await(server: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5)
        except urllib.error.HTTPError as error:
            error.close()
            return  # it answers, be it that this is no request of its
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError
