"""Kinds are found by name."""

from __future__ import annotations

import pytest

from lakewright.errors import SpecError
from lakewright.spec.definitions.registry import Registry


def test_a_kind_is_imported_when_it_is_first_needed() -> None:
    kinds = Registry({"target": {"validate": "tests.unit.spec.kinds:ValidateTarget"}})
    assert kinds.find("target", "validate") is kinds.find("target", "validate")
    with pytest.raises(SpecError, match="did you mean 'validate'"):
        kinds.find("target", "validat")
    with pytest.raises(SpecError, match="unknown kind 'x' of nix"):
        kinds.find("nix", "x")
