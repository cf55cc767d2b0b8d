"""X₀ of a fragment as a distribution over rotations, with a place for each, instead of one pose.

Which way a piece of a bowl faces nobody can tell, and a regression then learns the mean of all ways, which is none. A
distribution over a fixed grid of SO(3) keeps them apart, as the cells of a board do in the plane. A candidate is scored
by what the piece looks like when it stands so: its vectors are turned by the candidate, and one network scores them
all. So what is learnt of one rotation holds for every other. X̂₀ is the mean under the distribution: the diffusion is
the paper's.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from scipy.spatial.transform import Rotation
from torch import Tensor, nn

RotationLogits = Float[Tensor, "n k turns"]
"""of every rotation of the grid"""


@cache
def grid() -> Float[Tensor, "turns 3 3"]:
    """The 60 rotations of the icosahedron: no rotation is further than 45° from one of them."""
    return torch.from_numpy(Rotation.create_group("I").as_matrix()).float()


class RotationScores(nn.Module):
    """Scores every rotation of the grid, and says where the piece lies if it stands so.

    A linear map of vectors v turned by G is ⟨G, P⟩ with P made of the vectors alone, so no vector is really turned.
    """

    def __init__(self, vectors: int, shape: int, width: int, hidden: int = 96) -> None:
        super().__init__()
        self.vectors, self.hidden = vectors, hidden
        self.turned = nn.Linear(vectors, 3 * hidden, bias=False)
        self.shape = nn.Linear(shape, hidden)
        self.inner = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 4)
        self.told = nn.Linear(width, hidden + 9)
        self.alone = nn.Linear(hidden, 4)

    def seen(self, features: Float[Tensor, "n f"], shape: Float[Tensor, "n s"]) -> Float[Tensor, "n turns h"]:
        """What each piece looks like in every rotation; `features` begin with vectors, which turn, `shape` does not."""
        vectors = features[:, : 3 * self.vectors].unflatten(-1, (self.vectors, 3))
        mixed = self.turned(vectors.mT).unflatten(-1, (3, self.hidden))  # n b a h
        turned = torch.einsum("gab,nbah->ngh", grid().to(mixed), mixed)
        return turned + self.shape(shape)[:, None]

    def forward(
        self, seen: Float[Tensor, "n turns h"], nodes: Float[Tensor, "n k w"] | None = None
    ) -> tuple[RotationLogits, Float[Tensor, "n k 12"]]:
        """Logits and X̂₀ by what nodes say of k noisy versions, or by the look of each piece alone (k = 1)."""
        turns = grid().to(seen)
        if nodes is None:
            scored = self.alone(F.gelu(seen[:, None]))
            logits, places = scored[..., 0], scored[..., 1:]
        else:
            told, near = self.told(nodes).split([self.hidden, 9], -1)
            hidden = F.gelu(seen[:, None] + told[:, :, None])
            scored = self.last(F.gelu(self.inner(hidden)))
            logits, places = scored[..., 0] + near @ turns.flatten(1).T, scored[..., 1:]
        logits = logits.float()
        chance = logits.softmax(-1)
        place = (chance[..., None] * places).sum(2)
        return logits, torch.cat([place, chance @ turns.flatten(1)], -1)


def rotation_cross_entropy(
    logits: RotationLogits, true: Float[Tensor, "n 3 3"], narrow: float = 2.0
) -> Float[Tensor, ""]:
    """Cross-entropy of distributions with targets about the true rotations: softmax(narrow · ⟨G, R⟩) over the grid.

    The mean of a target with `narrow` = 2 is 2° from the true rotation, 4° at most.
    """
    near = torch.einsum("gab,nab->ng", grid().to(true), true)
    target = (narrow * near).softmax(-1)
    return -(target[:, None] * logits.log_softmax(-1)).sum(-1).mean()
