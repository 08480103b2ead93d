"""Run the airports over a lake in S3 by two drivers, kill one of them, and check what is in the lake.

The README beside it says what it needs.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
from deltalake import DeltaTable

HERE = Path(__file__).parent
SLICES = HERE.parent / "airports" / "data"
BUCKET = "airports"
ENTITIES = ("countries", "runways")
LAKEWRIGHT = shutil.which("lakewright") or "lakewright"

SERVER = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

# One request at a time: moto looks for an object and writes it in two steps, which its threads mix.
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""


def start_store() -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    """Start the store; return its process, and the environment by which others find it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVER, str(port)]
    store = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.1)
    environ = {
        "STORE_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "example",
        "AWS_SECRET_ACCESS_KEY": "not-a-secret",
        "AWS_REGION": "us-east-1",
    }
    return store, environ


def bring_slices(environ: dict[str, str]) -> int:
    """Bring the slices to bronze; return how many there are."""
    client: Any = boto3.client(
        "s3",
        endpoint_url=environ["STORE_URL"],
        region_name=environ["AWS_REGION"],
        aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
    )
    client.create_bucket(Bucket=BUCKET)
    files = [file for entity in ENTITIES for file in sorted((SLICES / entity).glob("*.csv.gz"))]
    for file in files:
        client.upload_file(str(file), BUCKET, f"lake/bronze/{file.parent.name}/{file.name}")
    return len(files)


def start_driver(environ: dict[str, str]) -> subprocess.Popen[str]:
    """Start a driver in a process of its own, as another machine would."""
    return subprocess.Popen(
        [LAKEWRIGHT, "job", "daily", "build", "-v", "--no-serve"],
        cwd=HERE,
        env={**os.environ, **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def lakewright(environ: dict[str, str], *arguments: str) -> str:
    """Return what a command prints."""
    environ = {**os.environ, **environ}
    command = [LAKEWRIGHT, *arguments]
    return subprocess.run(
        command, cwd=HERE, env=environ, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def kill_after_first_slice(driver: subprocess.Popen[str]) -> bool:
    """Kill a driver once it has processed a slice; return False if it ended before."""
    for line in driver.stderr or ():
        if " processed by " in line:
            driver.kill()
            driver.wait()
            return True
    driver.wait()
    return False


def commits(environ: dict[str, str], entity: str) -> list[str]:
    """Return the slices that the commits of a table were made for, sorted."""
    options = {
        "aws_endpoint_url": environ["STORE_URL"],
        "aws_access_key_id": environ["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": environ["AWS_SECRET_ACCESS_KEY"],
        "aws_region": environ["AWS_REGION"],
        "aws_allow_http": "true",
    }
    table = DeltaTable(f"s3://{BUCKET}/lake/silver/{entity}", storage_options=options)
    contents = [json.loads(entry.get("userMetadata") or "{}") for entry in table.history()]
    return sorted(str(each["item"]).rpartition("/")[2] for each in contents if "item" in each)


def main() -> int:
    """Run the example; return 0 if everything is as it must be."""
    store, environ = start_store()
    try:
        count = bring_slices(environ)
        print(f"{count} slices are in s3://{BUCKET}/lake/bronze")
        drivers = [start_driver(environ), start_driver(environ)]
        is_killed = kill_after_first_slice(drivers[0])
        print("the first driver was killed after its first slice" if is_killed else "it had nothing to do")
        drivers[1].communicate()
        print(f"the second driver ended with {drivers[1].returncode}")
        lakewright(environ, "job", "daily", "build", "--no-serve")
        verdicts = [row["verdict"] for row in json.loads(lakewright(environ, "manifest", "ls", "-o", "json"))]
        print(f"the manifest: {verdicts.count('processed')} of {len(verdicts)} slices are processed")
        names = sorted(file.name for file in (SLICES / "runways").glob("*.csv.gz"))
        found = {entity: commits(environ, entity) for entity in ENTITIES}
        for entity, items in found.items():
            print(f"{entity}: commits for {', '.join(items)}")
        is_right = verdicts == ["processed"] * count and found["runways"] == names
        # A slice of countries that changes nothing makes no commit.
        is_right = is_right and len(set(found["countries"])) == len(found["countries"]) > 0
        print("each slice was committed at most once, and none is missing" if is_right else "WRONG")
        return 0 if is_right else 1
    finally:
        store.kill()


if __name__ == "__main__":
    sys.exit(main())
