"""X₀ as a distribution over rotations: the grid covers all of them, and what is learnt of one holds for every other."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.core.poses import random_rotations
from diffassemble.core.settings import check_settings
from diffassemble.network.batch import PuzzleBatch
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.encoders.points import PointEncoder
from diffassemble.network.rotations import RotationScores, grid, rotation_cross_entropy
from diffassemble.network.spatial import angle_between, nearest_rotation

CONFIG = ModelConfig(backbone="vn_dgcnn", features=8, width=16, layers=2, heads=2, space="so3", join_hidden=16,
                     edge_features=False, votes=False, posed=True, head="rotations")  # fmt: skip


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_no_rotation_is_far_from_the_grid() -> None:
    apart = angle_between(grid()[None], random_rotations(2000, generator())[:, None]).amin(1)
    assert len(grid()) == 60
    assert float(apart.max().rad2deg()) < 45


def test_the_best_distribution_has_the_true_rotation_as_its_mean() -> None:
    true = random_rotations(50, generator())
    logits = torch.zeros(50, 1, len(grid()), requires_grad=True)
    optimiser = torch.optim.Adam([logits], 0.1)
    for _ in range(150):
        optimiser.zero_grad()
        rotation_cross_entropy(logits, true).backward()
        optimiser.step()
    mean = nearest_rotation(torch.einsum("ng,gab->nab", logits.detach()[:, 0].softmax(-1), grid()))
    assert float(angle_between(mean, true).max().rad2deg()) < 6


def test_turning_a_piece_by_a_rotation_of_the_grid_only_shifts_its_candidates() -> None:
    torch.manual_seed(0)
    encoder, scores = PointEncoder("vn_dgcnn", "equivariant", 8), RotationScores(8, 3, 16)
    points, turn = torch.randn(3, 60, 3, generator=generator()), grid()[17]
    shape, nodes = torch.randn(3, 3, generator=generator()), torch.randn(3, 2, 16, generator=generator())
    # What a node says of rotations themselves is seen from the whole, not from the piece.
    torch.nn.init.zeros_(scores.told.weight[-9:])
    torch.nn.init.zeros_(scores.told.bias[-9:])
    with torch.no_grad():
        plain, turned = (scores.seen(encoder(cloud), shape) for cloud in (points, points @ turn.T))
        # The piece turned by T looks under G as it looked under G T.
        same = angle_between((grid() @ turn)[:, None], grid()[None]).argmin(1)
        assert torch.allclose(turned, plain[:, same], atol=1e-3)
        for told in (None, nodes):
            (one, where), (other, there) = scores(plain, told), scores(turned, told)
            assert torch.allclose(other, one[:, :, same], atol=1e-3)
            assert torch.allclose(where[..., :3], there[..., :3], atol=1e-3)
            rotated = where[..., 3:].unflatten(-1, (3, 3)) @ turn.T
            assert torch.allclose(there[..., 3:].unflatten(-1, (3, 3)), rotated, atol=1e-3)
        assert float(one.std(-1).min()) > 1e-3


def test_the_network_predicts_the_mean_of_its_distribution() -> None:
    torch.manual_seed(0)
    model = Denoiser(CONFIG).eval()
    owner = torch.tensor([0, 0, 0, 1, 1])
    points = 0.2 * torch.randn(5, 64, 3, generator=generator())
    batch = PuzzleBatch(points, owner, torch.ones(5, 4), torch.ones(5, 3), None)
    noisy, time = model.space.prior((5, 2), generator()), torch.full((5, 2), 300)
    with torch.no_grad():
        found = model.predict(noisy, time, model.condition(batch))
    assert found.turns is not None
    chance = found.turns.softmax(-1)
    assert torch.allclose(found.vectors[..., 3:], chance @ grid().flatten(1), atol=1e-5)
    rotation = model.space.clean(found.vectors)[..., 3:].unflatten(-1, (3, 3))
    assert torch.allclose(torch.linalg.det(rotation), torch.ones(5, 2), atol=1e-4)


@pytest.mark.parametrize("change", [{"posed": False}, {"space": "six_d"}, {"votes": True, "contact_slots": 1}], ids=str)
def test_the_head_needs_pieces_that_turn(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match="head"):
        check_settings(ModelConfig(**{**vars(CONFIG), **change}))
