"""Arguments and options that several commands share, and how shells complete them.

Names are completed from the project's files, which are read without checks. A project that cannot be read
completes nothing: an error would disturb the line being typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from lakewright.cli.options import Decorator, despite_faults, settings_of, stacked
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
    job = _definitions(ctx, "jobs").get(str(ctx.params.get("name") or ctx.params.get("job")), {})
    declared = (each for each in _listed(job.get("parameters")) if isinstance(each, Mapping))
    names = [each["name"] for each in declared if "name" in each]
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


def _listed(declared: Any) -> list[Any]:
    return declared if isinstance(declared, list) else [] if declared is None else [declared]


def _definitions(ctx: click.Context, section: str) -> Mapping[str, Any]:
    """Return what the project's files declare in a section; a table of the short form is in three of them."""
    from lakewright.spec.reading.files import find_modules, find_project, project_file, read_document
    from lakewright.spec.reading.sections import CATEGORIES as CATEGORY_OF
    from lakewright.spec.reading.sections import Sections

    sections = Sections()
    with suppress(Exception):  # whatever is wrong with the project, the shell gets no error
        place = settings_of(ctx).project
        folder = (find_project(Path.cwd()) if place is None else place).absolute()
        top, _ = read_document(project_file(folder), folder)
        files, _ = find_modules(folder, _listed(top.value.get("modules")), top)
        for document in (top, *(read_document(file, folder)[0] for file in files)):
            sections.add(document)
        sections.key_entities()
        category = CATEGORY_OF[section]
        made = sections.tables if category in ("relation", "mapping", "target") else []
        return {each.name: each.raw for each in (*sections.definitions[category].values(), *made)}
    return {}


def slice_named(entity: str, name: str | None) -> tuple[str, str | None]:
    """Return the entity and the slice that were typed as `ENTITY SLICE`, or as `ENTITY/SLICE`.

    Example:
        >>> slice_named("orders/2024-05-01.csv", None), slice_named("orders", None)
        (('orders', '2024-05-01.csv'), ('orders', None))
    """
    before, slash, after = entity.partition("/")
    return (before, after) if name is None and slash and after else (entity, name)


def job_arguments(*, is_required: bool = True) -> Decorator:
    """Return what adds the arguments JOB, PHASE and PARAM=VALUE."""
    job, phase = ("JOB", "PHASE") if is_required else ("[JOB]", "[PHASE]")
    return stacked(
        click.argument("name", metavar=job, required=is_required, shell_complete=names_of("jobs")),
        click.argument(
            "phase", type=Phase.named, metavar=phase, required=is_required, shell_complete=complete_phase
        ),
        click.argument("parameters", nargs=-1, metavar="[PARAM=VALUE]...", shell_complete=complete_arguments),
    )


def rows_option(help: str, default: int = 20, name: str = "--rows") -> Decorator:
    """Return the option that limits how many rows are shown."""
    limits = click.IntRange(min=1)
    return click.option("-n", name, type=limits, default=default, show_default=True, help=help)


def entity_option(*names: str, **settings: Any) -> Decorator:
    """Return the option that chooses the slices of an entity."""
    completed = names_of("entities")
    return click.option(
        "--entity",
        *names,
        metavar="NAME",
        shell_complete=completed,
        help="Only slices of this entity.",
        **settings,
    )


def _user() -> str:
    from lakewright.stores.process import user_name

    return user_name()


def _check_author(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise click.BadParameter("the name is empty.")
    return name


author_option = click.option(
    "--author",
    metavar="NAME",
    default=_user,
    show_default="your user name",
    callback=_check_author,
    help="Who does it.",
)
"""Adds the option that names the author of a change; an empty name is refused."""

operator_options = stacked(
    despite_faults,
    click.option("--reason", metavar="TEXT", default="none given", help="Why; kept in the record."),
    author_option,
)
"""Adds the options by which an operator says who they are and why they act, and `--despite-faults`."""

run_options = stacked(
    click.option("-f", "--force", is_flag=True, help="Run clean targets, too."),
    click.option(
        "-t",
        "--targets",
        "--target",
        "targets",
        shell_complete=names_of("targets"),
        multiple=True,
        metavar="REGEX",
        help="Only targets whose name matches; also +NAME, NAME+, tag:…, kind:…, state:failed.",
    ),
    click.option(
        "-d", "--dirty", multiple=True, metavar="REGEX", help="Treat targets whose name matches as dirty."
    ),
    click.option("-nl", "--no-lifecycle", is_flag=True, help="Run only this phase, none before it."),
    click.option("-k", "--keep-going", is_flag=True, help="Run targets that do not depend on a failed one."),
    click.option(
        "--resume", is_flag=True, help="Run only what earlier runs left failed, blocked or not reached."
    ),
    click.option(
        "--retry",
        is_flag=True,
        help="For schedulers: add no rows again that failed runs have added.",
    ),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Run this many targets at once."),
    click.option("--wait", is_flag=True, help="Wait for what another run has locked."),
    click.option("--allow-data-loss", is_flag=True, help="Allow migrations to drop data."),
    click.option("--allow-backdated", is_flag=True, help="Allow a processing time earlier than the table's."),
)
"""Adds the options that `job_request` takes."""
