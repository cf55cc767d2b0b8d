"""Which sides continue each other, also across a gap: learnt, where gradients alone no longer tell.

Every side foretells what its neighbour shows, colour by colour along the border, and how sure it is of each; besides
it has a learned embedding. So a side is two vectors, what it foretells and what it shows, and all pairs of sides are
one matrix product. Sides are numbered as in `compatibility.image`, and read clockwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.compatibility.image import SIDES, Borders
from diffassemble.compatibility.judging import TERMS, Judgement
from diffassemble.model.pretrained import Pretrained

# Brightness, red against blue, and green against both: nearly independent in pictures.
_COLOURS = ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.0, -0.5), (0.25, -0.5, 0.25))
# No side is surer of a colour than to this deviation, about one and a half grey levels.
_SUREST = 0.006
# A strip of less contrast than this counts as flat.
_FLAT = 0.01
# Border scores (true neighbours: near 1) by which pieces count as worn: if the best of every side are higher, by their
# median. Then this many pixels are taken to be lost at every side; being wrong by one or two costs little.
_UNWORN = 3.0
_USUAL_GAP = 2
# Of more sides than this, only about so many are looked at for that.
_TYPICAL, _SEEN = 8000, 400
# Pieces that are judged at once.
_TOGETHER = 1000


@dataclass(frozen=True)
class SideJudgeConfig:
    """What the judging network is made of."""

    depth: int = 8
    """pixels of a piece that are looked at, from the side inwards"""
    length: int = 32
    """numbers to which a strip is brought along the side, even"""
    width: int = 64
    blocks: int = 2
    """residual blocks"""
    shown: int = 6
    """numbers that a side shows at each place, a multiple of the three colours"""
    embedding: int = 8
    """channels of the learned embedding"""
    widest_gap: int = 4
    """pixels that pieces may have lost at every side"""


class ResidualBlock(nn.Module):
    """Two convolutions along the side, beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, width)
        self.first = nn.Conv1d(width, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, padding=1)
        for parameter in self.second.parameters():
            nn.init.zeros_(parameter)

    def forward(self, maps: Float[Tensor, "sides w l"]) -> Float[Tensor, "sides w l"]:
        return maps + self.second(F.relu(self.first(self.norm(maps))))


class SideJudge(Pretrained):
    """Judges sides of square pieces that lost a known number of pixels; `judge` finds out if it did.

    `odds` holds, for every gap, how the judgement is weighed with border gradients (`compatibility.judging`).
    """

    config_class = SideJudgeConfig
    odds: Tensor
    mirrored: Tensor
    colours: Tensor

    def __init__(self, config: SideJudgeConfig) -> None:
        super().__init__()
        self.config = config
        gaps, width, shown = config.widest_gap + 1, config.width, config.shown
        self.stem = nn.Conv1d(3 * config.depth, width, 5, stride=2, padding=2)
        self.setting = nn.Linear(5 + gaps, width)
        self.blocks = nn.Sequential(*(ResidualBlock(width) for _ in range(config.blocks)))
        self.norm = nn.GroupNorm(1, width)
        self.foretell = nn.Conv1d(width, 4 * shown, 1)  # colour and certainty of two places
        self.embed = nn.Conv1d(width, 2 * config.embedding, 1)
        self.rare = nn.Linear(width, 1)
        for layer in (self.foretell, self.rare):
            for parameter in layer.parameters():
                nn.init.zeros_(parameter)
        # At first a side shows its colours, then their slope inwards, which the neighbour sees the other way round.
        sloping = torch.arange(shown)[:, None] >= 3
        slope = torch.arange(config.depth) == min(2, config.depth - 1)
        self.show = nn.Parameter((torch.arange(config.depth) == 0).float() - (sloping & slope).float())
        self.register_buffer("mirrored", 1 - 2 * sloping.float(), persistent=False)
        self.register_buffer("colours", torch.tensor(_COLOURS), persistent=False)
        self.level = nn.Parameter(torch.ones(shown, 1))
        self.heat = nn.Parameter(torch.tensor(-4.0))
        self.alone = nn.Parameter(torch.tensor(0.0))
        self.register_buffer("odds", torch.zeros(gaps, TERMS))

    def forward(self, pixels: Float[Tensor, "n 3 s s"], gap: int) -> Judgement:
        """Judge all sides of pieces that lost `gap` pixels at every side; colours in [0, 1]."""
        strips = torch.einsum("oc,ncdl->nodl", self.colours, side_strips(pixels, self.config) - 0.5)
        mean = strips.mean((2, 3), keepdim=True)
        contrast = (strips - mean).square().mean((2, 3), keepdim=True).sqrt() + _FLAT
        size = torch.full_like(mean[:, :1, 0, 0], pixels.shape[-1] / 32 - 0.75)
        told = F.one_hot(torch.tensor(gap), self.config.widest_gap + 1).to(size).expand(len(strips), -1)
        setting = torch.cat([3 * mean[:, :1, 0, 0], contrast[..., 0, 0].log() + 3, size, told], 1)
        maps = self.stem(((strips - mean) / contrast).flatten(1, 2)) + self.setting(setting)[..., None]
        maps = F.relu(self.norm(self.blocks(maps)))
        foretold, shown = self._continuation(strips, contrast, maps)
        # What is rare counts more when it fits.
        constant = self.rare(maps.mean(-1)).float()
        own, answer = self.embed(maps).float().chunk(2, 1)
        return Judgement(
            torch.cat([foretold, constant, 0.1 * own.flatten(1)], 1),
            torch.cat([shown, torch.ones_like(constant), answer.flip(-1).flatten(1)], 1),
            self.alone + 0.0,  # not a parameter any more, where no gradients are wanted
            self.odds[gap],
            gap,
        )

    def _continuation(
        self,
        strips: Float[Tensor, "sides 3 d l"],
        contrast: Float[Tensor, "sides 3 1 1"],
        maps: Float[Tensor, "sides w h"],
    ) -> tuple[Float[Tensor, "sides f"], Float[Tensor, "sides f"]]:
        """The log likelihood of what one side shows under the Gaussian that another foretells, as a product."""
        colour = torch.arange(self.config.shown, device=strips.device) % 3
        shown = torch.einsum("kd,nkdl->nkl", self.show, strips[:, colour])
        scale = contrast[:, colour, 0]
        change, certainty = self.foretell(maps).float().unflatten(1, (2, -1, 2)).mT.flatten(-2).unbind(1)
        mean = shown * self.mirrored + scale * change
        precision = ((self.level + certainty).exp() / scale.square()).clamp(max=_SUREST**-2)
        constant = (0.5 * precision.log() - precision * mean.square()).sum((1, 2))[:, None]
        heat = self.heat.exp() / self.config.length**0.5
        foretold = heat * torch.cat([-precision.flatten(1), (2 * precision * mean).flatten(1), constant], 1)
        facing = shown.flip(-1)  # the neighbour reads the common border the other way
        return foretold, torch.cat([facing.square().flatten(1), facing.flatten(1), torch.ones_like(constant)], 1)

    @torch.no_grad()
    def judge(self, pixels: Float[Tensor, "n 3 s s"]) -> Judgement:
        """Judge all sides; whether pieces lost pixels at them is seen from how well the best of them fit."""
        borders = Borders.of(pixels)
        if len(borders) <= _TYPICAL:
            best = borders.best(1).score
        else:  # so many tell as much as all
            every = torch.arange(len(borders), device=pixels.device)
            best = borders.scores(every[:: len(borders) // _SEEN], every).amin(1)
        worn = best.numel() > 0 and float(best.median()) > _UNWORN
        gap = min(_USUAL_GAP, self.config.widest_gap) if worn else 0
        # In blocks: what is computed on the way takes far more room than what comes of it.
        parts: list[Judgement] = [self(block, gap) for block in pixels.split(_TOGETHER)]
        foretold, shown = torch.cat([part.foretold for part in parts]), torch.cat([part.shown for part in parts])
        return Judgement(foretold, shown, parts[0].alone, parts[0].odds, gap)


def side_strips(pixels: Float[Tensor, "n 3 s s"], config: SideJudgeConfig) -> Float[Tensor, "sides 3 d l"]:
    """What lies along every side, from the outermost line of pixels inwards; pieces may be of any size."""
    views = [torch.rot90(pixels, side, (-2, -1))[..., -config.depth :] for side in range(SIDES)]
    strips = torch.stack(views, 1).flatten(0, 1).flip(-1).mT
    lacking = config.depth - strips.shape[2]
    strips = torch.cat([strips, strips[:, :, -1:].expand(-1, -1, lacking, -1)], 2)
    if strips.shape[-1] == config.length:
        return strips
    resampled = F.interpolate(strips.flatten(1, 2), config.length, mode="linear", align_corners=False)
    return resampled.unflatten(1, (3, config.depth))
