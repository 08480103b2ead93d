"""A metastore that another process has open is told before Spark starts: its own error would hide that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakewright.errors import LeaseHeld
from lakewright.spark.conf import SessionSettings, embedded_metastore
from lakewright.spark.session_builder import build_session, check_metastore_is_free

HIVE = {"spark.sql.catalogImplementation": "hive"}
# Locks the file as Derby does, until its input ends.
OPENER = """
import fcntl, sys
with open(sys.argv[1], "wb") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("conf", "is_embedded"),
    [
        (HIVE, True),
        ({}, False),
        ({"spark.sql.catalogImplementation": "in-memory"}, False),
        (HIVE | {"spark.hadoop.hive.metastore.uris": "thrift://db:9083"}, False),
        (HIVE | {"spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:postgresql://db/hive"}, False),
    ],
)
def test_only_a_kept_catalog_without_a_server_has_one(conf: dict[str, str], is_embedded: bool) -> None:
    found = embedded_metastore(conf, Path("/state"))
    assert found == (Path("/state/metastore_db") if is_embedded else None)


def test_a_session_is_not_started_while_another_process_has_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewright.spark.session_builder.has_jvm", lambda: False)
    folder = tmp_path / "metastore_db"
    check_metastore_is_free(folder)
    folder.mkdir()
    command = [sys.executable, "-c", OPENER, str(folder / "dbex.lck")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as opener:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "open\n"
        with pytest.raises(LeaseHeld) as refused:
            build_session(SessionSettings(tmp_path, conf=HIVE))
        opener.communicate()
    assert str(folder) in refused.value.message
    assert "hive.metastore.uris" in str(refused.value.remedy)

    check_metastore_is_free(folder)
