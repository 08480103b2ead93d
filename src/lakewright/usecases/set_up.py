"""Prepare this machine for fast starts: fetch Delta's jars and make the archive of the JVM's classes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakewright.errors import NotInstalled
from lakewright.spark.class_archive import archive_path
from lakewright.spark.jars import fetch_jars, jars_folder, missing_jars
from lakewright.spark.java import find_java

__all__ = ["SetUp", "set_up"]


@dataclass(frozen=True, slots=True)
class SetUp:
    """What was prepared.

    Attributes:
        fetched: The number of jars that were missing.
        jars: Their folder.
        archive: The archive of classes, or None if it could not be made.
        is_new: Whether the archive was made now.
    """

    fetched: int
    jars: Path
    archive: Path | None
    is_new: bool


def set_up(environ: Mapping[str, str]) -> SetUp:
    """Fetch missing jars, and make the archive of this environment unless it exists.

    Raises:
        NotInstalled: There is no Java or no PySpark, or a jar cannot be fetched.
    """
    java = find_java(environ)
    folder = jars_folder(environ)
    missing = missing_jars(folder)
    fetch_jars(environ)
    archive = archive_path(java)
    is_there = archive.is_file()
    if not is_there:
        # A former failure was marked; this time it is asked for.
        archive.with_suffix(".vain").unlink(missing_ok=True)
        # It is written by a JVM at its end, so a process of its own starts one and ends it.
        command = [sys.executable, "-m", "lakewright.spark.warmup"]
        done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False)
        if done.returncode:
            message, *rest = done.stderr.strip().splitlines() or ["the archive of classes could not be made"]
            raise NotInstalled(message, remedy=" ".join(rest) or None)
    return SetUp(len(missing), folder, archive if archive.is_file() else None, not is_there)
