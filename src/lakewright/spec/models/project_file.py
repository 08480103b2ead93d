"""The keys of `project.yml` that describe the project itself, and its sections `apply:` and `cluster:`.

Source: the project files' rules, `1. Project files`.
"""

from __future__ import annotations

import re

from pydantic import ByteSize, Field, field_validator

from lakewright.spec.expressions.values import parse_length
from lakewright.spec.grants import Grant
from lakewright.spec.models.base import Listed, Model, SnakeModel, TextMap, Texts

_ADDRESS = r"[A-Za-z0-9_.\-]+:\d{1,5}|\[[0-9A-Fa-f:]+\]:\d{1,5}"
_MASTER = re.compile(
    rf"spark://(?:{_ADDRESS})(?:,(?:{_ADDRESS}))*|yarn|k8s://\S+|sc://\S+|"
    r"local(?:\[\s*(?:\d+|\*)\s*(?:,\s*\d+\s*)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
)


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


class ReplayBudget(SnakeModel):
    """What a replay may cost without consent."""

    slices: int = Field(default=100, ge=0, description="The number of slices.")
    bytes: ByteSize = Field(
        default=ByteSize(10 << 30), ge=0, description="The bytes of their files, such as `500MB` or `2GiB`."
    )


class ApplySettings(SnakeModel):
    """What `apply` may do without asking, each time."""

    allow: Listed[Grant] = Field(default=(), description="The grants that are always given.")
    replay_budget: ReplayBudget = Field(
        default_factory=ReplayBudget, description="What a replay may cost without the grant `replay`."
    )


class ClusterSettings(SnakeModel):
    """The cluster that Spark works on; without a master, Spark works on this machine."""

    master: str = Field(
        default="",
        description="Spark's master: `spark://host:7077` (several: `spark://a:7077,b:7077`), `yarn`, "
        "`k8s://https://host:443`, Spark Connect's `sc://host:15002`, or `local[*]`; default: "
        "this machine.",
    )
    shared: bool = Field(
        default=False,
        description="Whether all machines of the cluster see local folders under the same path.",
    )
    timeout: str = Field(
        default="2m",
        description="How long to wait for the first executor, such as `30s`.",
    )

    @field_validator("master")
    @classmethod
    def _known_master(cls, master: str) -> str:
        if master and _MASTER.fullmatch(master) is None:
            raise ValueError(
                f"{master!r} is no master of Spark; write spark://host:7077, yarn, k8s://https://host:443, "
                "sc://host:15002 or local[*]"
            )
        return master

    @field_validator("timeout")
    @classmethod
    def _length(cls, timeout: str) -> str:
        if parse_length(timeout).total_seconds() <= 0:
            raise ValueError(f"{timeout!r} leaves no time to start an executor; write 30s or 10m")
        return timeout

    @property
    def seconds(self) -> float:
        """How long to wait for the first executor, in seconds."""
        return parse_length(self.timeout).total_seconds()
