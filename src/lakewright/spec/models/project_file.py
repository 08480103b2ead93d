"""The keys of `project.yml` that describe the project itself.

Source: the project files' rules, `1. Project files`.
"""

from __future__ import annotations

from pydantic import Field

from lakewright.spec.models.base import Listed, Model, TextMap, Texts


class ImportSpec(Model):
    """An imported project, whose definitions are named `<project>/<name>`."""

    project: str = Field(min_length=1, description="Name of the imported project.")
    location: str | None = Field(default=None, description="Its folder; default: beside this project's.")
    job: str | None = Field(default=None, description="The job whose environment its definitions use.")
    arguments: TextMap = Field(
        default_factory=dict,
        description="Values of that job's parameters; without a job, of its environment.",
    )


class ProjectFile(Model):
    """The project itself, as `project.yml` describes it."""

    name: str = Field(min_length=1, pattern=r"^[^/\s]+$", description="Name of the project.")
    version: str | None = Field(default=None, description="Version, for people.")
    description: str | None = Field(default=None, description="What the project is.")
    modules: Texts = Field(default=(), description="Files and folders with further sections.")
    imports: Listed[ImportSpec] = Field(default=(), description="Projects whose definitions are used.")
