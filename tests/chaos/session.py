"""A session of chaos: one lake, some strikes, and at the end a run that nobody harms."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.acceptance.command import Done
from tests.chaos.invariants import Witness
from tests.chaos.lake import CANARY, ENTITIES, ChaosLake
from tests.chaos.strikes import Strike, job, strike

from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Author
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.stores.process import is_dead
from lakewright.stores.registry import open_store

# How a run may end: done; a target failed or was lost; held by another; broken off; killed.
ALLOWED = {0, 1, 4, 130, 137, 143, -9, -15}
SHORTEST = 5.0


class Broken(AssertionError):
    """Something that must hold doesn't."""


@dataclass
class Session:
    """A lake and what is done to it.

    Attributes:
        seed: Decides the slices and the strikes.
        kinds: Of strikes.
        say: Prints a line.
        horizon: Seconds that an unharmed run is thought to take.
    """

    folder: Path
    settings: Mapping[str, Any]
    seed: int
    kinds: Sequence[str]
    say: Callable[[str], None]
    horizon: float = 15.0
    struck: int = 0
    missed: int = 0
    output: list[str] = field(default_factory=list)

    def chosen(self, points: int) -> Iterator[Strike]:
        """Yield so many strikes, chosen by the seed."""
        chance = random.Random(self.seed)
        for _ in range(points):
            yield Strike.chosen(chance, self.kinds)

    def run(self, strikes: Iterable[Strike]) -> None:
        """Strike one lake again and again, then let the work be finished; look at the lake after each.

        Raises:
            Broken: Something doesn't hold; the message says what, after which strike.
        """
        lake = ChaosLake.make(self.folder, self.settings)
        with closing(open_store(self._opened())) as store:
            witness = Witness(lake, store, self.seed)
            for number, how in enumerate(strikes, 1):
                self._arrive(witness, 2 if number == 1 else int(not self._is_pending(witness)))
                ends = strike(lake, how, self.horizon)
                self._tell(number, how, ends)
                self._judge(f"strike {number} ({how})", witness, ends)
                self._resolve(witness)
            self._finish(witness)

    def _opened(self) -> dict[str, Any]:
        """The manifest's settings as the project has them, seen from anywhere."""
        places = {"sqlite": {"path": ".lakewright/manifest.db"}, "delta": {"location": "manifest"}}
        own = places.get(str(self.settings["kind"]), {})
        return {**self.settings, **{name: str(self.folder / place) for name, place in own.items()}}

    def _arrive(self, witness: Witness, more: int) -> None:
        for _ in range(more):
            witness.slices += 1
            witness.lake.arrive(self.seed, witness.slices)

    def _is_pending(self, witness: Witness) -> bool:
        counts = witness.store.counts()
        done = sum(number for (_, verdict), number in counts.items() if verdict is Verdict.PROCESSED)
        return done < len(ENTITIES) * witness.slices

    def _tell(self, number: int, how: Strike, ends: list[Done]) -> None:
        is_missed = ends[0].code == 0
        self.missed += is_missed
        self.struck += not is_missed
        if is_missed and how.kind not in ("failpoint", "file"):
            self.horizon = max(SHORTEST, ends[0].seconds)
        codes = ", ".join(str(end.code) for end in ends)
        self.say(f"  {number}. {how}: ended with {codes} after {ends[0].seconds:.1f} s")

    def _judge(self, after: str, witness: Witness, ends: list[Done], *, is_done: bool = False) -> None:
        wrong = [f"it ended with {end.code}" for end in ends if end.code not in ALLOWED]
        wrong += ["the secret was printed" for end in ends if CANARY in end.all]
        wrong += ["a traceback was printed" for end in ends if "Traceback (most recent" in end.all]
        wrong += witness.complaints(is_done=is_done)
        if wrong:
            printed = "\n".join(end.all for end in ends)
            raise Broken(f"seed {self.seed}, after {after}:\n" + "\n".join(wrong) + f"\n{printed}")

    def _resolve(self, witness: Witness) -> None:
        """What an operator does about slices that failed because their JVM was killed, or the like."""
        ledger = Ledger(witness.store, Author.named("chaos"), ids=lambda: str(uuid4()), is_dead=is_dead)
        for item in witness.store.select(Query(verdicts=frozenset({Verdict.FAILED}))):
            ledger.resolve(item.item_id, "struck on purpose")

    def _finish(self, witness: Witness) -> None:
        done = job(witness.lake).ended()
        self.say(f"  then unharmed: ended with {done.code} after {done.seconds:.1f} s")
        self._judge("the run that nobody harmed", witness, [done], is_done=True)
        if done.code != 0:
            raise Broken(f"seed {self.seed}: the unharmed run ended with {done.code}:\n{done.all}")
        again = job(witness.lake).ended()
        self._judge("a run without work", witness, [again], is_done=True)
