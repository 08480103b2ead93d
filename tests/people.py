"""A small project in the long form: one entity of people, its target, and the job `daily`."""

from __future__ import annotations

from pathlib import Path

PROJECT = """\
name: people
modules: [model]
lake: {root_folder: "${project.basedir}/lake"}
"""

MODEL = """\
connections:
  files: {settings: {bronze_path: "${destination}", silver_path: "${destination}", bronze_format: csv}}
entities:
  people:
    id: 1
    connection: files
    processtype: merge
    columns:
      - {name: id, datatype: long, fieldroles: [businesskey]}
      - {name: born, datatype: date}
targets:
  people: {kind: entity, entity: people}
jobs:
  daily: {targets: [people]}
"""

FIRST = """\
id,name,born,city
1,Ada,1815-12-10,London
2,Blaise,1623-06-19,Clermont-Ferrand
3,Charles,1791-12-26,London
"""


def write_people(folder: Path) -> Path:
    """Write the project, with its first slice, into a folder, and return it."""
    files = {"project.yml": PROJECT, "model/people.yml": MODEL, "lake/bronze/people/2022-01-01.csv": FIRST}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
