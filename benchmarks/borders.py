"""All (4n)² border scores as one matrix product against a plain double loop over side pairs, at 400 pieces."""

from __future__ import annotations

import time

import torch
from skimage import data

from diffassemble.compatibility.image import _VARIANCE_FLOOR, border_scores, side_lines
from diffassemble.cutting.image import cut_picture
from diffassemble.puzzle import Board


def one_way(lines: torch.Tensor, first: int, second: int) -> float:
    """Mahalanobis gradient compatibility of one side against one other, as its formula reads."""
    edge, inner = lines[first]
    gradient = edge - inner
    mean = gradient.mean(0)
    covariance = (gradient - mean).T @ (gradient - mean) / len(edge) + _VARIANCE_FLOOR * torch.eye(3)
    beyond = lines[second, 0].flip(0) - edge - mean
    return float((beyond @ torch.linalg.inv(covariance) * beyond).sum())


def main() -> None:
    """Time both; the double loop is timed on a share of the pairs and extrapolated."""
    picture = torch.tensor(data.astronaut()).permute(2, 0, 1).float() / 255
    pixels = cut_picture(picture, Board(20, 20), torch.Generator().manual_seed(0), size=28).pieces.pixels
    border_scores(pixels[:8])
    began = time.monotonic()
    scores = border_scores(pixels)
    together = time.monotonic() - began
    lines = side_lines(pixels - 0.5)
    pairs = torch.randint(len(lines), (2000, 2), generator=torch.Generator().manual_seed(0)).tolist()
    pairs = [(a, b) for a, b in pairs if a // 4 != b // 4]
    began = time.monotonic()
    loop = torch.tensor([(one_way(lines, a, b) + one_way(lines, b, a)) / (6 * pixels.shape[-1]) for a, b in pairs])
    each = (time.monotonic() - began) / len(pairs)
    whole = each * len(lines) ** 2 / 2
    found = torch.stack([scores[a, b] for a, b in pairs])
    worst = float(((found - loop).abs() / (1 + loop)).max())
    print(f"{len(lines)}² side pairs: {together:.2f} s as one product, {whole:.0f} s in a loop (extrapolated)")
    print(f"ratio {whole / together:.0f}, largest relative difference {worst:.1e}")


if __name__ == "__main__":
    main()
