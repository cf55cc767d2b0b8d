"""Fracture keeps its promises: exact counts, watertight fragments in one part, no volume lost."""

from __future__ import annotations

import pytest
import torch
import trimesh

from diffassemble.core import InputError, Mesh
from diffassemble.fragments.breaking import fracture, fracture_puzzle


def mesh(shape: trimesh.Trimesh) -> Mesh:
    return Mesh(torch.tensor(shape.vertices.copy()).float(), torch.tensor(shape.faces.copy()).long())


BALL = mesh(trimesh.creation.icosphere(3))
PIPE = mesh(trimesh.creation.annulus(0.4, 0.5, 1.0))


def shapes(fragments: list[Mesh]) -> list[trimesh.Trimesh]:
    return [trimesh.Trimesh(part.vertices.numpy(), part.faces.numpy(), process=False) for part in fragments]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("pieces", [2, 3, 8, 20])
@pytest.mark.parametrize("whole", [BALL, PIPE], ids=["ball", "pipe"])
def test_exactly_so_many_sound_fragments(whole: Mesh, pieces: int) -> None:
    fragments = shapes(fracture(whole, pieces, generator(pieces)))
    assert len(fragments) == pieces
    assert all(part.is_watertight and part.body_count == 1 and part.volume > 0 for part in fragments)
    volume = shapes([whole])[0].volume
    assert sum(part.volume for part in fragments) == pytest.approx(volume, rel=1e-4)


def test_fragments_stand_in_their_places_at_any_scale() -> None:
    moved = Mesh(BALL.vertices * 250 + torch.tensor([900.0, 0, -40]), BALL.faces)
    fragments = fracture(moved, 5, generator())
    corners = torch.cat([part.vertices for part in fragments])
    assert torch.allclose(corners.amin(0), moved.vertices.amin(0), atol=0.1)
    assert torch.allclose(corners.amax(0), moved.vertices.amax(0), atol=0.1)
    assert all(part.is_watertight for part in shapes(fragments))


def test_many_pieces() -> None:
    fragments = shapes(fracture(BALL, 40, generator()))
    assert len(fragments) == 40
    assert all(part.is_watertight for part in fragments)


def test_the_seed_decides() -> None:
    first, second, other = (fracture(PIPE, 4, generator(seed)) for seed in (3, 3, 4))
    assert all(torch.equal(a.vertices, b.vertices) for a, b in zip(first, second, strict=True))
    assert first[0].vertices.shape != other[0].vertices.shape or not torch.equal(first[0].vertices, other[0].vertices)


def test_chips_are_small_and_the_others_large() -> None:
    fragments = shapes(fracture(BALL, 6, generator(), chips=0.5))
    mean = sum(part.volume for part in fragments) / 6
    assert sum(part.volume < 0.12 * mean for part in fragments) == 3
    assert len(fragments) == 6
    assert all(part.is_watertight for part in fragments)


def test_breaks_are_rough() -> None:
    """No plane holds the corners of a break."""
    first, second = fracture(BALL, 2, generator())
    shared = first.vertices[torch.cdist(first.vertices, second.vertices).amin(1) < 1e-5].double()
    assert len(shared) > 100
    assert float(torch.linalg.svdvals(shared - shared.mean(0))[-1]) / len(shared) ** 0.5 > 0.01


@pytest.mark.parametrize(
    ("pieces", "chips", "words"),
    [(1, 0.0, "into 1 pieces; ask for 2 to 200"), (201, 0.0, "ask for 2 to 200"), (4, 1.0, "share of chips 1.0")],
)
def test_wrong_numbers(pieces: int, chips: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fracture(BALL, pieces, generator(), chips)


def test_open_meshes_are_refused() -> None:
    with pytest.raises(InputError, match="not watertight; close its holes"):
        fracture(Mesh(BALL.vertices, BALL.faces[1:]), 4, generator())


def test_separate_parts_count_as_pieces() -> None:
    faces = torch.cat([BALL.faces, BALL.faces + len(BALL.vertices), BALL.faces + 2 * len(BALL.vertices)])
    three = Mesh(torch.cat([BALL.vertices + torch.tensor([4.0 * i, 0, 0]) for i in range(3)]), faces)
    assert len(fracture(three, 4, generator())) == 4
    with pytest.raises(InputError, match="has 3 separate parts; ask for at least 3 pieces"):
        fracture(three, 2, generator())


def test_cavities_are_kept() -> None:
    hole = Mesh(BALL.vertices * 0.5, BALL.faces.flip(1) + len(BALL.vertices))
    hollow = Mesh(torch.cat([BALL.vertices, hole.vertices]), torch.cat([BALL.faces, hole.faces]))
    fragments = shapes(fracture(hollow, 5, generator()))
    assert len(fragments) == 5
    assert all(part.is_watertight for part in fragments)
    assert sum(part.volume for part in fragments) == pytest.approx(7 / 8 * shapes([BALL])[0].volume, rel=1e-4)


def test_puzzles_lose_a_share_and_keep_the_size_of_the_whole() -> None:
    full = fracture_puzzle(BALL, 6, generator(), points=200)
    part = fracture_puzzle(BALL, 6, generator(), missing=0.5, points=200)
    assert (len(full), len(part)) == (6, 3)
    assert part.fragments.unit == full.fragments.unit == pytest.approx(2)
    assert part.fragments.points.shape == (3, 200, 3)
    assert part.names == ("fragment_00", "fragment_01", "fragment_02")
    assert part.truth is not None
    assert full.truth is not None
    stands = torch.cdist(part.truth.translation, full.truth.translation).amin(1)
    assert stands.max() < 1e-6
    with pytest.raises(InputError, match=r"missing share 1\.0"):
        fracture_puzzle(BALL, 6, generator(), missing=1.0)
