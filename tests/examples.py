"""How many examples a property tries, in `make test` and at night."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""Examples of a property in `make test` that says nothing itself, as Hypothesis sets it."""


def examples(usual: int) -> int:
    """Return how many examples to try: `usual` ones in `make test`, and more where the profile has more.

    The profile `nightly` has twenty times the usual number.
    """
    return max(1, usual * settings().max_examples // USUAL)
