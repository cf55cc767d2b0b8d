"""An endless stream of broken objects in which every puzzle is a pure function of (seed, step, number)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from diffassemble.datasets.augmentation import uniform
from diffassemble.datasets.config import FragmentConfig
from diffassemble.datasets.pools import Pool
from diffassemble.datasets.stream import Portion, seeded, share_out
from diffassemble.puzzle import Puzzle


class FragmentStream:
    """Batches of about `pieces` pieces; `pools` are kinds of fractures, drawn from by the configured shares."""

    def __init__(self, pools: Sequence[Sequence[Pool]], config: FragmentConfig, pieces: int, seed: int) -> None:
        kinds = list(zip(pools, config.shares, strict=True))
        self.kinds = [pool for pool, share in kinds if pool and share > 0]
        self.shares = torch.tensor([share for pool, share in kinds if pool and share > 0])
        self.config, self.pieces, self.seed = config, pieces, seed

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""
        generator = seeded(self.seed, step)
        whole = uniform(0.0, 1.0, generator) < self.config.whole_share
        missing = 0.0 if whole else uniform(0.0, self.config.missing, generator)
        chosen = self._chosen(generator)
        numbers, share = share_out(len(chosen), rank, world)
        puzzles = [self._puzzle(step, number, chosen[number], missing) for number in numbers]
        # The loss is a mean over pieces, of which processes do not get equally many.
        own, every = (sum(len(chosen[number]) for number in some) for some in (numbers, range(len(chosen))))
        return Portion(puzzles, numbers.start, own * world / every if share else 0.0)

    def _chosen(self, generator: torch.Generator) -> list[Pool]:
        """Fractures at random until they make up a batch."""
        chosen: list[Pool] = []
        while not chosen or sum(map(len, chosen)) < self.pieces:
            kind = self.kinds[int(torch.multinomial(self.shares, 1, generator=generator))]
            pool = kind[int(torch.randint(len(kind), (), generator=generator))]
            joined = uniform(0.0, 1.0, generator) < self.config.joined
            chosen.append(pool.joined(generator) if joined else pool)
        return chosen

    def _puzzle(self, step: int, number: int, pool: Pool, missing: float) -> Puzzle:
        generator = seeded(self.seed, step, number)
        stretch = 1 + self.config.stretch * (2 * torch.rand(3, generator=generator) - 1)
        # Up stays up; left and right, front and back are often a matter of taste.
        mirror = 1 - 2 * torch.randint(0, 2, (3,), generator=generator) * torch.tensor([1, 0, 1])
        return pool.stretched(stretch * mirror).scatter(generator, self.config.points, missing)
