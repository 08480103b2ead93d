"""What `plan` and `job` say of a phase that is not one."""

from __future__ import annotations

import click
import pytest

from lakewright.cli.commands.arguments import phase_named


def test_an_argument_in_the_place_of_the_phase_says_that_the_phase_is_missing() -> None:
    with pytest.raises(
        click.BadParameter, match="the phase is missing before 'day=2024-01-01'; there are validate"
    ):
        phase_named("day=2024-01-01")
