"""`lakewright setup`: prepare the machine, so that sessions start fast and without a network."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import line
from lakewright.cli.progress import working
from lakewright.cli.render.words import counted

__all__ = ["setup"]

FAILED = 1


@command(examples=["lakewright setup"])
@click.pass_obj
def setup(call: Call, /) -> int:
    """Fetch Delta's jars, and make the archive of Java's classes with which Spark starts in half the time.

    Runs fetch the jars themselves, and work without the archive, so this is needed only where runs have no
    network, or start often. It takes about a minute and 190 MB.
    """
    from lakewright.usecases.set_up import set_up

    with working(call.output, "preparing Spark"):
        done = set_up(call.environ)
    document = {
        "jars": str(done.jars),
        "fetched": done.fetched,
        "archive": None if done.archive is None else str(done.archive),
        "made": done.archive is not None and done.is_new,
    }
    if done.archive is None:
        archive = "the archive of classes could not be made; Spark starts without it"
    else:
        archive = f"archive of classes {'made' if done.is_new else 'present'}: {done.archive}"
    page = [line(f"{counted(done.fetched, 'jar')} fetched into {done.jars}"), line(archive)]
    call.output.result(document, page)
    return 0 if done.archive is not None else FAILED
