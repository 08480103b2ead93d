"""The page of results: targets, measurements, and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: its name, its value, and its target."""

    what: str
    measured: str
    wanted: str = ""


def machine() -> str:
    """Return the machine and the versions of the measurements."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    versions = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "delta-spark", "deltalake"))
    return (
        f"{len(os.sched_getaffinity(0))} cores of {platform.machine()}, {memory} GiB, "
        f"{platform.system()}, Python {platform.python_version()}, {versions}."
    )


def print_rows(title: str, rows: Sequence[Row]) -> None:
    """Print measurements, one per line."""
    for row in rows:
        wanted = f" (wanted {row.wanted})" if row.wanted else ""
        print(f"{title}: {row.what}: {row.measured}{wanted}")


def write_page(page: Path, title: str, rows: Sequence[Row]) -> None:
    """Replace the section `title` of the page by a table, and keep the other sections."""
    table = "\n".join(f"| {row.what} | {row.measured} | {row.wanted} |" for row in rows)
    write_section(page, title, f"| what | measured | wanted |\n|---|---|---|\n{table}")


def write_section(page: Path, title: str, content: str) -> None:
    """Replace the section `title` of the page, and keep the other sections.

    The section names its machine unless it is that of the page's head.
    """
    start, end = f"<!-- {title} -->", f"<!-- end of {title} -->"
    text = page.read_text(encoding="utf-8") if page.exists() else _HEAD.format(machine=machine())
    head = " ".join(text.partition("<!--")[0].split())
    where = "" if machine() in head else f"{machine()}\n\n"
    section = f"{start}\n## {title}\n\n{where}{content}\n{end}\n"
    if start in text:
        before, _, rest = text.partition(start)
        section = before + section + rest.partition(f"{end}\n")[2]
    else:
        section = f"{text.rstrip()}\n\n{section}"
    page.write_text(section, encoding="utf-8")


_HEAD = """# Benchmarks

`make bench` writes this page. Contestants take turns in one run on the same machine. Ratios are comparable
between machines, seconds are not. Unless a section names another machine: {machine}
"""
