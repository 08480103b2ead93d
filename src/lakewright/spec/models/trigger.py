"""Triggers: when `lakewright serve` runs a job, or processes entities, by itself.

Source: the rules of the server, "Triggers".
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from lakewright.spec.cron import check_cron, find_zone
from lakewright.spec.expressions.values import parse_length
from lakewright.spec.models.base import (
    Lower,
    Named,
    RefersTo,
    TextMap,
    Texts,
    Upper,
    from_text,
    inconsistent,
)

LEAST_POLL = timedelta(milliseconds=100)
LONGEST = timedelta(days=1)

Length = Annotated[timedelta, from_text(parse_length), WithJsonSchema({"type": "string"})]
"""A length of time: `2s`, `10m`, `PT1H`."""


class TriggerEvent(StrEnum):
    """What a trigger without `cron` waits for."""

    ARRIVAL = "arrival"
    PROCESSED = "processed"


class CatchUp(StrEnum):
    """Which of the times that passed while no server ran still lead to a run."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


class Trigger(Named):
    """When a job runs, or entities are processed, without a person.

    Attributes:
        parameters: Texts by the name of the job's parameter, or `name:start` and so on. Their expressions are
            evaluated at each run, with the time for which the run is due as current time.
    """

    deferred: ClassVar[frozenset[str]] = frozenset({"parameters"})

    job: Annotated[str | None, RefersTo.JOB] = Field(default=None, description="The job to run.")
    phase: Upper[Literal["VALIDATE", "CREATE", "BUILD", "VERIFY"]] | None = Field(
        default=None,
        description="The phase up to which the job runs; required for a job.",
    )
    parameters: TextMap = Field(
        default_factory=dict,
        description="Arguments of the job; expressions have the time that each run is due.",
    )
    entities: Annotated[Texts, RefersTo.ENTITY] = Field(
        default=(), description="The entities to process, instead of a job."
    )
    cron: Annotated[str, from_text(check_cron)] | None = Field(
        default=None,
        description="When it is due: minute, hour, day, month, weekday; or `@daily` and the like.",
    )
    timezone: Annotated[str, BeforeValidator(lambda text: find_zone(text).key)] = Field(
        default="UTC", description="Time zone of `cron`, and of dates in `parameters`."
    )
    catch_up: Lower[CatchUp] = Field(
        default=CatchUp.LAST,
        alias="catch_up",
        description="Which times missed while no server ran count.",
    )
    on: Lower[TriggerEvent] | None = Field(
        default=None, description="Whether it waits for slices that arrive, or that were processed."
    )
    of: Annotated[Texts, RefersTo.ENTITY] = Field(
        default=(), description="Entities whose slices it waits for; default: its `entities`."
    )
    settle: Length = Field(
        default=timedelta(seconds=2),
        le=LONGEST,
        description="Time without changes, or without a further processed slice, after which it starts.",
    )
    every: Length = Field(
        default=timedelta(seconds=10),
        ge=LEAST_POLL,
        le=LONGEST,
        description="How often bronze is listed.",
    )
    enabled: bool = Field(default=True, description="Whether it starts runs.")
    description: str | None = Field(default=None, description="What it is for.")

    @model_validator(mode="after")
    def _whole(self) -> Trigger:
        if (self.job is None) == (not self.entities):
            raise inconsistent("give either a job or entities", remedy="Write `job:` or `entities:`.")
        if (self.cron is None) == (self.on is None):
            raise inconsistent(
                "give either cron or on", remedy='Write `cron: "15 3 * * *"`, or `on: arrival` or processed.'
            )
        if self.job is not None and self.phase is None:
            raise inconsistent("'phase' is missing", remedy="Write `phase: build`, or verify.")
        if self.job is None and (self.phase is not None or self.parameters):
            raise inconsistent("phase and parameters are those of a job, and there is none")
        if self.on is None and self.of:
            raise inconsistent("`of` has no effect without `on`")
        if self.on is not None and self.job is not None and not self.of:
            raise inconsistent(
                f"'of' is missing: the entities whose slices it waits for on {self.on}",
                remedy="Write `of: [ENTITY]`.",
            )
        if self.on is TriggerEvent.PROCESSED and (own := sorted(set(self.entities) & set(self.sources))):
            raise inconsistent(
                f"it processes {own[0]!r} on each slice of {own[0]!r} that is processed",
                remedy="Name in `of` the entities that are processed before.",
            )
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """The entities whose slices it waits for; none for a trigger with `cron`."""
        return () if self.on is None else self.of or self.entities

    def when(self, entity: str = "") -> str:
        """Return when it runs, in words; `entity` is the one of its entities that is meant."""
        if self.cron is not None:
            return f"{self.cron} {self.timezone}"
        what = "arrival of slices of" if self.on is TriggerEvent.ARRIVAL else "processed slices of"
        return f"{what} {', '.join(self.of or ((entity,) if entity else self.sources))}"
