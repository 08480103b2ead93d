"""Templates: definitions written once, with parameters that each use gives.

Source: the project files' rules, `templates`; a use has the kind `template/<name>`, as in Flowman.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lakewright.spec.job import Parameter
from lakewright.spec.model import Listed, Named

__all__ = ["PREFIX", "TemplateSpec"]

PREFIX = "template/"
"""What the kind of a template's use starts with."""


class TemplateSpec(Named):
    """A template for definitions of one category, which is its `kind`."""

    parameters: Listed[Parameter] = Field(default=(), description="Values that each use gives.")
    template: dict[str, Any] = Field(description="The definition, in which $parameter stands for a value.")
