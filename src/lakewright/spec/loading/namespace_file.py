"""Flowman's file of a namespace: what it declares has no effect, and warnings say what to use.

Source: Flowman's documentation, "Namespaces" and "Metrics".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakewright.errors import Fault
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.spec.reading.parsed_file import ParsedFile

_SINKS = {
    "console": Phrase(
        "The history has the metrics of each run: ",
        Command("history", "show", "RUN", "-o", "json"),
        ". `lakewright.metrics.json` in `config` writes them to a file.",
    ),
    "jdbc": "Set `lakewright.metrics.json` in `config` and load the file into the database, or let a hook of "
    "kind `jdbc` insert a row for each phase or target.",
    "prometheus": "Set `lakewright.metrics.pushgateway` in `config` to the URL of the push gateway.",
}
_OTHER_SINK = "`lakewright.metrics.json`, `.prometheus` and `.pushgateway` in `config` say where metrics go."

_SECTIONS = {
    "catalog": "Tables of Hive are found in the metastore that `config` names.",
    "catalogs": "Tables of Hive are found in the metastore that `config` names.",
    "config": "Move the entries to `config` of a module.",
    "connections": "Move them to `connections` of a module.",
    "environment": "Move the entries to `environment` of a module.",
    "history": Phrase("The manifest keeps the history of all runs: ", Command("history"), "."),
    "hooks": "Move them to `hooks` of each job.",
    "plugins": "Lakewright has no plugins. Remove them, and set `spark.jars` in `config` for drivers.",
    "profiles": "Move them to `profiles` of a module.",
    "store": Phrase("Name the project with ", Option("--project"), "."),
}


def namespace_warnings(file: ParsedFile) -> Iterator[Fault]:
    """Yield a warning for the file, or for each section of it that has no effect and for each metric sink."""
    sections = file.value if isinstance(file.value, dict) else {}
    found = [fault for name in sections for fault in _section_warnings(file, name, sections[name])]
    if not found:
        remedy = "Put what you need of it into the project."
        found = [Fault(f"{_name(file)} is not read", file.at(), remedy)]
    yield from found


def _section_warnings(file: ParsedFile, name: Any, section: Any) -> Iterator[Fault]:
    if name == "metrics":
        for position, sink in enumerate(section if isinstance(section, list) else [section]):
            kind = sink.get("kind") if isinstance(sink, dict) else sink
            where = file.at((name, position) if isinstance(section, list) else (name,))
            why = f"{_name(file)} is not read: the metric sink {str(kind)!r} has no effect"
            yield Fault(why, where, _SINKS.get(str(kind), _OTHER_SINK))
    elif name in _SECTIONS:
        why = f"{_name(file)} is not read: its {name!r} has no effect"
        yield Fault(why, file.at((name,)), _SECTIONS[name])


def _name(file: ParsedFile) -> str:
    return file.file.rsplit("/", 1)[-1]
