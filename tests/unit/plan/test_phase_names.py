"""What `plan` and `job`, and their like in Python, say of a phase that is not one."""

from __future__ import annotations

import pytest

from lakewright.errors import UsageError
from lakewright.plan.phase import Phase


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("day=2024-01-01", "the phase is missing before 'day=2024-01-01'; there are validate"),
        ("bild", "'bild' is not a phase; did you mean 'build'?"),
    ],
)
def test_a_word_that_is_no_phase_is_named_with_those_that_there_are(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        Phase.named(text)


def test_case_does_not_count() -> None:
    assert Phase.named("Build") is Phase.BUILD
