"""Hadoop's access to local files without other programs does what Hadoop's own does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakewright.spark.engine import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS = "io.lakewright.storage.NioLocalFileSystem"
HADOOPS = "org.apache.hadoop.fs.LocalFileSystem"


@pytest.fixture
def hadoop(spark: SparkSession) -> Any:
    jvm = jvm_of(spark)
    if jvm is None:
        pytest.skip("the JVM is the server's")
    return jvm.packages


def made(hadoop: Any, name: str) -> Any:
    """Return a file system of a class."""
    conf = hadoop.org.apache.hadoop.conf.Configuration()
    package, _, kind = name.rpartition(".")
    found = getattr(getattr(hadoop, package), kind)()
    found.initialize(hadoop.java.net.URI.create("file:///"), conf)
    return found


def test_sessions_have_it(spark: SparkSession, hadoop: Any, tmp_path: Path) -> None:
    jvm = jvm_of(spark)
    assert jvm is not None
    conf = jvm.hadoop
    files = hadoop.org.apache.hadoop.fs.Path(tmp_path.as_uri()).getFileSystem(conf)
    context = hadoop.org.apache.hadoop.fs.FileContext.getFileContext(conf)
    assert files.getClass().getName() == OURS
    assert context.getDefaultFileSystem().getClass().getName() == "io.lakewright.storage.NioLocalFs"


@pytest.mark.parametrize("name", [OURS, HADOOPS])
@pytest.mark.parametrize("mode", [0o644, 0o600, 0o751])
def test_permissions_are_set(hadoop: Any, tmp_path: Path, name: str, mode: int) -> None:
    files, target = made(hadoop, name), tmp_path / "file"
    target.write_text("x")
    (tmp_path / "link").symlink_to(target)
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o2775)  # what is made in it belongs to the folder's group
    permission = hadoop.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}")
    for each in (tmp_path / "link", folder):
        files.setPermission(hadoop.org.apache.hadoop.fs.Path(str(each)), permission)
    assert target.stat().st_mode & 0o7777 == mode
    assert folder.stat().st_mode & 0o7777 == 0o2000 | mode
    files.setPermission(hadoop.org.apache.hadoop.fs.Path(str(target)), permission)
    assert target.stat().st_mode & 0o7777 == mode


@pytest.mark.parametrize("name", [OURS, HADOOPS])
def test_links_are_known(hadoop: Any, tmp_path: Path, name: str) -> None:
    files, target = made(hadoop, name), tmp_path / "file"
    target.write_text("x")
    (tmp_path / "link").symlink_to(target)
    status = files.getFileLinkStatus(hadoop.org.apache.hadoop.fs.Path(str(target)))
    assert (status.isSymlink(), status.getLen()) == (False, 1)
    assert files.getFileLinkStatus(hadoop.org.apache.hadoop.fs.Path(str(tmp_path / "link"))).isSymlink()
    with pytest.raises(Exception, match="FileNotFoundException"):
        files.getFileLinkStatus(hadoop.org.apache.hadoop.fs.Path(str(tmp_path / "none")))
