"""Completion in shells: the names that a project declares, read without checking the project.

A project that cannot be read completes nothing: an error would disturb the line being typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from lakewright.cli.options import settings_of
from lakewright.plan.phase import Phase

CATEGORIES = ("job", "target", "entity", "relation", "mapping", "connection")
"""The categories of definitions that `show` knows."""


Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def names_of(*sections: str) -> Completer:
    """Return a completer of the names in sections of the project, such as `jobs`."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        del param
        return _starting([name for each in sections for name in _definitions(ctx, each)], incomplete)

    return complete


def complete_definition(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the categories, or the names of the definitions of the category given before."""
    del param
    words = ctx.params.get("words") or ()
    if not words:
        return _starting(CATEGORIES, incomplete)
    section = "entities" if words[0] == "entity" else f"{words[0]}s"
    return _starting(_definitions(ctx, section), incomplete)


def complete_decisions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the subjects that wait for a decision, or the choices of the one that is given."""
    subject = ctx.params.get("subject")
    found: list[str] = []
    with suppress(Exception):  # whatever is wrong with the project, the shell gets no error
        from lakewright.app import App
        from lakewright.usecases.due.take import plan_of_project

        settings = settings_of(ctx)
        plan = plan_of_project(App.open(settings.project, profiles=settings.profiles))
        for each in plan.choices:
            about = each.decision.subject.text
            if param.name == "subject":
                found.append(about)
            elif about == subject:
                found.append(each.verb.value)
    return _starting(dict.fromkeys(found), incomplete)


def complete_arguments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return `name=`, `name:start=` and `name:end=` for each parameter of the job given before."""
    del param
    job = _definitions(ctx, "jobs").get(str(ctx.params.get("name") or ctx.params.get("job")))
    declared = job.get("parameters") if isinstance(job, Mapping) else None
    listed = declared if isinstance(declared, list) else [declared]
    names = [
        each["name"] for each in listed if isinstance(each, Mapping) and isinstance(each.get("name"), str)
    ]
    ends = ("=", ":start=", ":end=")
    return _starting([f"{name}{end}" for name in names for end in ends], incomplete)


def complete_phase(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the phases."""
    del ctx, param
    return _starting([phase.lower() for phase in Phase], incomplete)


def complete_phase_and_arguments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return phases, where none is given yet, and the parameters of the job."""
    phases = [] if ctx.params.get(param.name or "") else complete_phase(ctx, param, incomplete)
    return [*phases, *complete_arguments(ctx, param, incomplete)]


def _starting(names: Any, incomplete: str) -> list[str]:
    return [str(name) for name in names if str(name).startswith(incomplete)]


def _definitions(ctx: click.Context, section: str) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    try:
        for value in _documents(ctx):
            declared = value.get(section)
            if isinstance(declared, Mapping):
                found |= declared
            elif isinstance(declared, list):
                found |= {
                    each["name"]: each for each in declared if isinstance(each, Mapping) and "name" in each
                }
    except Exception:  # whatever is wrong with the project, the shell gets no error
        return {}
    return found


def _documents(ctx: click.Context) -> Iterator[Mapping[str, Any]]:
    from lakewright.spec.reading.files import find_modules, find_project, project_file, read_document

    place = settings_of(ctx).project
    folder = (find_project(Path.cwd()) if place is None else place).absolute()
    top, _ = read_document(project_file(folder), folder)
    modules = top.value.get("modules") if isinstance(top.value, Mapping) else ()
    listed = modules if isinstance(modules, list) else [modules]
    files, _ = find_modules(folder, [each for each in listed if isinstance(each, str)], top)
    for file in files:
        document, _ = read_document(file, folder)
        if isinstance(document.value, Mapping):
            yield document.value
