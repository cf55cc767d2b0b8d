"""Which sides of pieces on a grid continue each other: border gradients, and learned edge compatibility beside them.

Mahalanobis gradient compatibility (Gallagher 2012): side i predicts the pixels beyond itself, c = edge + mean
gradient, with the covariance S of its own gradients; side j is scored by Σ_r (x_r − c_r)ᵀ S⁻¹ (x_r − c_r).
Learned compatibility also works across a gap. In both a side is two vectors, its prediction and its content, and all
pairs of sides are one matrix product. A logistic regression combines them to one probability.

Sides of a piece, clockwise: 0 right, 1 bottom, 2 left, 3 top. Side a of piece i has index 4i + a. Oblong pieces fit at
half turns only: upright sides touch upright ones, level sides touch level ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Interval, MultipleOf
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Matches, Poses, Puzzle, turn_matrix
from diffassemble.core.board import SIDES
from diffassemble.core.limits import LIMITS
from diffassemble.core.matches import CHANNELS
from diffassemble.core.settings import Even, Few, Width
from diffassemble.network.batch import MatchFinder
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.pretrained import Pretrained, find_model

NEVER = -1e4
"""the fit of two sides that cannot be neighbours, a log probability"""
TERMS = 18
"""regressors of a pair's log odds, see `Candidates.terms`"""


@dataclass(frozen=True)
class EdgeConfig:
    """Numbers of border scores and of the probabilities that follow from them."""

    variance: float = 2 / 255**2
    """added to the variances of a side's gradients, in squared colours (two squared grey levels), for flat sides"""
    softening: float = 0.02
    """added to scores (true neighbours: near 1) before logarithms or ratios are taken, for flat pieces score 0"""
    odds: tuple[float, ...] = (-1.3761, -0.0054, -0.0881, 1.8372, 2.5002, -0.1255, -0.5875, 0.4203, -0.1426, -0.2626)
    """coefficients of `odds_terms`; fitted by benchmarks/calibrate_borders.py on training pictures"""
    bound: float = 20.0
    """largest absolute value of every one of these terms"""
    rank_slope: float = 3.0
    """how fast the rank channel falls with the logarithm of the score behind the best"""
    rank_softening: float = 0.001
    """added to scores before that logarithm is taken"""
    certain: float = 2.0
    """score at which the quality channel is ½"""
    block: int = 2**20
    """scores computed at once when only the best are kept"""
    fewest_rows: int = 104
    """least sides at once: products of fewer rows take more than twice as long a row"""


EDGES = EdgeConfig()
EXCLUDED = 1e9
"""the score of an upright side against a level one of oblong pieces"""


def side_lines(pixels: Float[Tensor, "n 3 h w"], sides: Sequence[int] = range(SIDES)) -> Float[Tensor, "m two l 3"]:
    """Outermost and second line of pixels of these sides of every piece, read clockwise around it."""
    views = torch.stack([torch.rot90(pixels, side, (-2, -1))[..., -2:] for side in sides], 1)
    lines = torch.stack([views[..., -1], views[..., -2]], 2)  # n, side, line, colour, along
    return lines.transpose(-1, -2).flatten(0, 1)


@dataclass(frozen=True)
class Partners:
    """The best partners of every side, best first, and their scores."""

    side: Int[Tensor, "sides keep"]
    score: Float[Tensor, "sides keep"]


@dataclass(frozen=True)
class Borders:
    """What every side predicts and what it shows, so that the scores of any pairs are one matrix product."""

    predicted: Float[Tensor, "sides w"]
    observed: Float[Tensor, "sides w"]
    oblong: bool = False

    @staticmethod
    def of(pixels: Float[Tensor, "n 3 h w"], config: EdgeConfig = EDGES) -> Borders:
        """The borders of pieces; side a of piece i is number 4i + a."""
        if pixels.shape[-1] == pixels.shape[-2]:
            return Borders._of_lines(side_lines(pixels), config)
        upright, level = (Borders._of_lines(side_lines(pixels, sides), config) for sides in ((0, 2), (1, 3)))
        widest = max(upright.predicted.shape[1], level.predicted.shape[1])
        tables = []
        for name, apart in (("predicted", (0.0, EXCLUDED)), ("observed", (1.0, 0.0))):
            marked = []
            for part, mark in ((getattr(upright, name), apart), (getattr(level, name), apart[::-1])):
                # Two more columns, whose products add up to EXCLUDED if one side is upright and the other is not.
                columns = part.new_tensor(mark).expand(len(part), 2)
                marked.append(torch.cat([F.pad(part, (0, widest - part.shape[1])), columns], 1).unflatten(0, (-1, 2)))
            # Sides 0 and 2, 1 and 3 of each piece, back in their order.
            tables.append(torch.stack(marked, 2).flatten(0, 2))
        return Borders(tables[0], tables[1], oblong=True)

    @staticmethod
    def _of_lines(lines: Float[Tensor, "sides two l 3"], config: EdgeConfig) -> Borders:
        lines = lines.double() - 0.5
        edge, inner = lines[:, 0], lines[:, 1]
        facing = edge.flip(1)  # the neighbour reads the common border the other way
        gradient = edge - inner
        mean = gradient.mean(1, keepdim=True)
        size = edge.shape[1]
        covariance = (gradient - mean).transpose(1, 2) @ (gradient - mean) / size
        precision = torch.linalg.inv(covariance + config.variance * torch.eye(3).to(covariance))
        continued = edge + mean
        weighted = continued @ precision
        constant = (weighted * continued).sum((1, 2))[:, None]
        predicted = torch.cat([precision.flatten(1), -2 * weighted.flatten(1), constant], 1) / (6 * size)
        moments = (facing.transpose(1, 2) @ facing).flatten(1)
        return Borders(predicted, torch.cat([moments, facing.flatten(1), torch.ones_like(constant)], 1))

    def __len__(self) -> int:
        return len(self.observed)

    def __getitem__(self, sides: Int[Tensor, "k"]) -> Borders:
        return Borders(self.predicted[sides], self.observed[sides], self.oblong)

    @property
    def rivals(self) -> int:
        """How many sides of other pieces may touch a side."""
        return (len(self) - SIDES) // (2 if self.oblong else 1)

    def against(self, other: Borders) -> Float[Tensor, "r c"]:
        """The scores of all these sides with all those of other pieces."""
        there = (self.predicted @ other.observed.T).clamp_(min=0)
        return there.add_((self.observed @ other.predicted.T).clamp_(min=0)).float()

    def scores(self, rows: Int[Tensor, "r"], cols: Int[Tensor, "c"]) -> Float[Tensor, "r c"]:
        """The scores of all pairs of some sides with some others; infinite within one piece."""
        same = (rows // SIDES)[:, None] == cols // SIDES
        return self[rows].against(self[cols]).masked_fill_(same, torch.inf)

    def best(self, keep: int, config: EdgeConfig = EDGES) -> Partners:
        """The `keep` best partners of every side, in blocks, so that the whole matrix is never in memory."""
        every = torch.arange(len(self), device=self.observed.device)
        keep = min(keep, self.rivals)
        # Allocated first: small results between large temporary arrays would fragment the heap.
        side, score = every.new_empty(len(self), keep), self.observed.new_empty(len(self), keep, dtype=torch.float32)
        for rows in every.split(max(config.fewest_rows, config.block // len(self))):
            same = (rows // SIDES)[:, None] == every // SIDES
            scores = self[rows].against(self).masked_fill_(same, torch.inf)
            score[rows], side[rows] = scores.topk(keep, largest=False)
        return Partners(side, score)


def odds_terms(partners: Partners, config: EdgeConfig = EDGES) -> Float[Tensor, "sides keep 10"]:
    """Regressors of a pair's log odds: 1, level, level², low, high, low², high², low·high, level·low, level·high.

    The level is the logarithm of the score; low and high are its leads over the best other partner of either side.
    """
    logs = torch.log(partners.score + config.softening)
    best, second = logs[:, :1], logs[:, 1:2]
    own_rival = torch.cat([second, best.expand(-1, logs.shape[1] - 1)], 1)
    everyone = torch.arange(len(logs), device=logs.device)[:, None]
    mutual = partners.side[partners.side, 0] == everyone
    their_rival = torch.where(mutual, second[partners.side, 0], best[partners.side, 0])
    leads = own_rival - logs, their_rival - logs
    low, high = torch.minimum(*leads), torch.maximum(*leads)
    products = [low**2, high**2, low * high, logs * low, logs * high]
    return torch.stack([torch.ones_like(logs), logs, logs**2, low, high, *products], -1).clamp(
        -config.bound, config.bound
    )


def evidence(partners: Partners, config: EdgeConfig = EDGES) -> Float[Tensor, "sides keep 3"]:
    """The channels of pairs: probability of being neighbours, rank among rivals, quality whatever the rivals."""
    if not partners.side.numel():
        return partners.score.new_zeros(*partners.side.shape, CHANNELS)
    probability = (odds_terms(partners, config) @ partners.score.new_tensor(config.odds)).sigmoid()
    levels = torch.log(partners.score + config.rank_softening)
    behind = levels[:, :1] + levels[partners.side, 0] - 2 * levels
    return torch.stack([probability, rank_evidence(behind, config), quality_evidence(partners.score, config)], -1)


def rank_evidence(behind: Float[Tensor, "*s"], config: EdgeConfig = EDGES) -> Float[Tensor, "*s"]:
    """exp(slope · behind): 1 for pairs that are both sides' best, less by the logarithm they are behind the best."""
    return (config.rank_slope * behind).exp()


def quality_evidence(score: Float[Tensor, "*s"], config: EdgeConfig = EDGES) -> Float[Tensor, "*s"]:
    """1 / (1 + (score / certain)²): near 1 for border scores that only true neighbours have."""
    return 1 / (1 + (score / config.certain) ** 2)


def matches_of_sides(
    first_side: Int[Tensor, "m"], second_side: Int[Tensor, "m"], pitch: float, channels: Float[Tensor, "m c"]
) -> Matches:
    """Matches of side pairs: side a of first touches side b of second, one pitch away from its centre."""
    a, b = first_side % SIDES, second_side % SIDES
    outward = turn_matrix(b)[:, :, 0]  # where the right side's direction, (1, 0), is turned to
    relative = Poses(turn_matrix(b + 2 - a), pitch * outward)
    return Matches(first_side // SIDES, second_side // SIDES, relative, SIDES * a + b, channels)


@dataclass(frozen=True)
class ComparisonConfig:
    """Numbers of the comparison of all sides with a trained edge model."""

    edges: EdgeConfig = EDGES
    """those of the border scores beside it"""
    most_learned: int = 1000
    """pieces up to which networks take matches from learned edges: four times as slow as border gradients alone"""
    certain: float = 12.0
    """bound of the log odds of a pair as the model gives them"""
    bound: float = 40.0
    """largest absolute value of every regressor"""
    same: float = 1e-4
    """logarithms of scores that differ by less are equal up to rounding"""
    worn_score: float = 3.0
    """median border score of the best partners (true neighbours: near 1) above which pieces count as eroded"""
    gap: int = 2
    """pixels that eroded pieces are taken to have lost at every side; an error of one or two costs little"""
    many_sides: int = 8000
    """sides above which that median is taken over some of them only"""
    sampled_sides: int = 400
    """about how many sides these are"""
    pieces_at_once: int = 1000
    """pieces that the network reads at once; its maps take far more room than its results"""


DEFAULT = ComparisonConfig()


@dataclass(frozen=True)
class EdgeCompatibility:
    """What every side predicts and what it shows; their symmetric product is the fit of a pair.

    Over all sides and `alone`, the logit of no partner, fits are log probabilities up to a constant. `odds` are the
    coefficients of `Candidates.terms`; `gap` is how many pixels pieces are taken to have lost at every side.
    """

    predicted: Float[Tensor, "sides w"]
    observed: Float[Tensor, "sides w"]
    alone: Float[Tensor, ""]
    odds: Float[Tensor, "terms"]
    gap: int

    def __len__(self) -> int:
        return len(self.observed)

    def fits(self, rows: Int[Tensor, "r"]) -> Float[Tensor, "r sides"]:
        """The fits of some sides with all sides; NEVER within one piece. Symmetric."""
        piece = torch.arange(len(self), device=rows.device) // SIDES
        fits = self.predicted[rows] @ self.observed.T + self.observed[rows] @ self.predicted.T
        return fits.masked_fill(piece[rows][:, None] == piece, NEVER)

    def normaliser(self, fits: Float[Tensor, "r sides"]) -> Float[Tensor, "r"]:
        """What to subtract from the fits of some sides to get log probabilities."""
        return torch.logaddexp(fits.logsumexp(1), self.alone)


CompareEdges = Callable[[Float[Tensor, "n 3 h w"], Borders], EdgeCompatibility]


@dataclass(frozen=True)
class Candidates:
    """The most promising partners of every side, and the features of these pairs.

    `level` is the logarithm of a pair's border score; `lead` and `lead_there` by how much those of the best others of
    either side are higher; `chance` and `chance_there` its log odds by the model from either side.
    """

    side: Int[Tensor, "sides keep"]
    level: Float[Tensor, "sides keep"]
    lead: Float[Tensor, "sides keep"]
    lead_there: Float[Tensor, "sides keep"]
    chance: Float[Tensor, "sides keep"]
    chance_there: Float[Tensor, "sides keep"]

    def terms(self, config: ComparisonConfig = DEFAULT) -> Float[Tensor, "sides keep 18"]:
        """The regressors of the log odds of pairs."""
        level, low, high = self.level, *torch.stack([self.lead, self.lead_there]).sort(0).values
        less, more = torch.stack([self.chance, self.chance_there]).sort(0).values
        plain = [torch.ones_like(level), level, low, high, less, more]
        squares = [level**2, low**2, high**2, less**2 / 4, more**2 / 4]
        products = [low * high, level * low, level * high]
        shared = [less * more / 4, less * low / 2, more * low / 2, level * less / 2]
        return torch.stack([*plain, *squares, *products, *shared], -1).clamp(-config.bound, config.bound)

    def evidence(
        self, odds: Float[Tensor, "terms"], config: ComparisonConfig = DEFAULT
    ) -> Float[Tensor, "sides keep 3"]:
        """The channels of pairs as border gradients alone give them, except for the probability, which is learned."""
        behind = self.lead.clamp(max=0) + self.lead_there.clamp(max=0)
        score, edges = self.level.exp() - config.edges.softening, config.edges
        probability = (self.terms(config) @ odds).sigmoid()
        return torch.stack([probability, rank_evidence(behind, edges), quality_evidence(score, edges)], -1)


def find_candidates(
    borders: Borders, compatibility: EdgeCompatibility, keep: int, config: ComparisonConfig = DEFAULT
) -> Candidates:
    """The `keep` partners of every side with the best sum of fit and −level, in blocks; none if there are not two."""
    every = torch.arange(len(borders))
    keep = min(keep, borders.rivals)
    # Allocated first: small results between large temporary arrays would fragment the heap.
    side, (level, fit) = every.new_empty(len(every), keep), torch.empty(2, len(every), keep).unbind()
    best, normaliser = torch.empty(len(every), 2), torch.empty(len(every))
    for rows in every.split(max(config.edges.fewest_rows, config.edges.block // len(borders))):
        levels = torch.log(borders.scores(rows, every) + config.edges.softening)
        fits = compatibility.fits(rows)
        side[rows] = chosen = (fits - levels).topk(keep).indices
        level[rows], fit[rows] = levels.gather(1, chosen), fits.gather(1, chosen)
        best[rows], normaliser[rows] = levels.topk(2, largest=False).values, compatibility.normaliser(fits)
    first, second = best[:, :1], best[:, 1:]
    lead = torch.where(level <= first + config.same, second, first) - level
    lead_there = torch.where(level <= first[side, 0] + config.same, second[side, 0], first[side, 0]) - level
    probable = [(fit - total).clamp(max=-1e-6) for total in (normaliser[:, None], normaliser[side])]
    chances = [(log - torch.log(-torch.expm1(log))).clamp(-config.certain, config.certain) for log in probable]
    return Candidates(side, level, lead, lead_there, *chances)


class Evidence:
    """The borders of the pieces of one puzzle; each part is computed when it is first needed, and only once."""

    def __init__(self, pixels: Float[Tensor, "n 3 h w"]) -> None:
        self.pixels = pixels
        self._learned: dict[CompareEdges, EdgeCompatibility] = {}

    @cached_property
    def borders(self) -> Borders:
        """Border gradients of all sides."""
        return Borders.of(self.pixels)

    def matches(
        self, pitch: float, keep: int = 8, edge_model: CompareEdges | None = None, config: ComparisonConfig = DEFAULT
    ) -> Matches:
        """The `keep` best partners of every side as matches; by border gradients alone without an edge model."""
        if edge_model is None:
            partners = self.borders.best(keep, config.edges)
            side, channels = partners.side, evidence(partners, config.edges)
        else:
            if edge_model not in self._learned:
                self._learned[edge_model] = edge_model(self.pixels, self.borders)
            compatibility = self._learned[edge_model]
            found = find_candidates(self.borders, compatibility, keep, config)
            side, channels = found.side, found.evidence(compatibility.odds, config)
        rows = torch.arange(len(side), device=side.device).repeat_interleave(side.shape[1])
        return matches_of_sides(rows, side.flatten(), pitch, channels.flatten(0, 1))


def find_matches(puzzle: Puzzle, edge_model: CompareEdges | None = None, keep: int = 8) -> Matches:
    """The matcher of square and oblong pieces: candidate matches of every side with its `keep` best partners."""
    return Evidence(puzzle.pixels).matches(puzzle.board.pitch, keep, edge_model)


def match_finder(
    network: PoseNetwork, evidence: Evidence | None = None, config: ComparisonConfig = DEFAULT
) -> MatchFinder | None:
    """The matcher that a network needs, by border gradients or the edges of its config; of `evidence` if given."""
    if not network.pairwise:
        return None
    edge_model = load_edge_model(network.config.edge_model) if network.config.edge_model else None

    def find(puzzle: Puzzle) -> Matches:
        known, chosen = evidence or Evidence(puzzle.pixels), edge_model if len(puzzle) <= config.most_learned else None
        return known.matches(puzzle.board.pitch, edge_model=chosen, config=config)

    return find


def load_edge_model(name: str) -> CompareEdges:
    """Learned edge compatibility by its bundled name, folder or hub id; loaded once a process."""
    return _load(find_model(name).resolve()).compare


# Brightness, red against blue, and green against both: nearly independent in pictures.
_COLOURS = ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.0, -0.5), (0.25, -0.5, 0.25))


@dataclass(frozen=True)
class EdgeModelConfig:
    """The size of the network, and the scales that its weights were trained with."""

    depth: Width = 8
    """pixels of a piece that are read, from the side inwards"""
    length: Even = 32
    """numbers to which a strip is brought along the side, even"""
    width: Width = 64
    blocks: Few = 2
    """residual blocks"""
    observed: Annotated[int, Interval(ge=3, le=LIMITS.network_width), MultipleOf(3)] = 6
    """numbers that a side shows at each place, a multiple of the three colours"""
    embedding: Width = 8
    """channels of the learned embedding"""
    widest_gap: Few = 4
    """pixels that pieces may have lost at every side"""
    least_deviation: Annotated[float, Interval(gt=0, le=1)] = 0.006
    """least standard deviation of a predicted colour, about one and a half grey levels of 255"""
    flat: Annotated[float, Interval(gt=0, le=1)] = 0.01
    """added to the contrast of a strip, as a colour: strips of less count as flat"""


class StripBlock(nn.Module):
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


class EdgeModel(Pretrained):
    """Compares sides of pieces that lost a known number of pixels; `compare` estimates whether they did."""

    config_class = EdgeModelConfig
    odds: Tensor
    mirrored: Tensor
    colours: Tensor

    def __init__(self, config: EdgeModelConfig) -> None:
        super().__init__()
        self.config = config
        gaps, width, observed = config.widest_gap + 1, config.width, config.observed
        self.stem = nn.Conv1d(3 * config.depth, width, 5, stride=2, padding=2)
        self.setting = nn.Linear(5 + gaps, width)
        self.blocks = nn.Sequential(*(StripBlock(width) for _ in range(config.blocks)))
        self.norm = nn.GroupNorm(1, width)
        self.predict = nn.Conv1d(width, 4 * observed, 1)  # colour and log precision of two places
        self.embed = nn.Conv1d(width, 2 * config.embedding, 1)
        self.rare = nn.Linear(width, 1)
        for layer in (self.predict, self.rare):
            for parameter in layer.parameters():
                nn.init.zeros_(parameter)
        # Initially a side shows its colours and their slope inwards, which has the opposite sign for the neighbour.
        sloping = torch.arange(observed)[:, None] >= 3
        slope = torch.arange(config.depth) == min(2, config.depth - 1)
        self.observe = nn.Parameter((torch.arange(config.depth) == 0).float() - (sloping & slope).float())
        self.register_buffer("mirrored", 1 - 2 * sloping.float(), persistent=False)
        self.register_buffer("colours", torch.tensor(_COLOURS), persistent=False)
        self.level = nn.Parameter(torch.ones(observed, 1))
        self.temperature = nn.Parameter(torch.tensor(-4.0))
        self.alone = nn.Parameter(torch.tensor(0.0))
        self.register_buffer("odds", torch.zeros(gaps, TERMS))

    def forward(self, pixels: Float[Tensor, "n 3 h w"], gap: int) -> EdgeCompatibility:
        """Compare all sides of pieces that lost `gap` pixels at every side; colours in [0, 1]."""
        strips = torch.einsum("oc,ncdl->nodl", self.colours, side_strips(pixels, self.config) - 0.5)
        mean = strips.mean((2, 3), keepdim=True)
        contrast = (strips - mean).square().mean((2, 3), keepdim=True).sqrt() + self.config.flat
        # Sides are as long as the piece is high, wide, high, wide.
        length = mean.new_tensor(pixels.shape[-2:]).repeat(2).repeat(len(pixels))[:, None]
        size = length / 32 - 0.75
        lost = F.one_hot(torch.tensor(gap), self.config.widest_gap + 1).to(size).expand(len(strips), -1)
        setting = torch.cat([3 * mean[:, :1, 0, 0], contrast[..., 0, 0].log() + 3, size, lost], 1)
        maps = self.stem(((strips - mean) / contrast).flatten(1, 2)) + self.setting(setting)[..., None]
        maps = F.relu(self.norm(self.blocks(maps)))
        # The log likelihood of what one side shows under the Gaussian that another predicts, as a dot product.
        colour = torch.arange(self.config.observed, device=strips.device) % 3
        shown = torch.einsum("kd,nkdl->nkl", self.observe, strips[:, colour])
        scale = contrast[:, colour, 0]
        change, certainty = self.predict(maps).float().unflatten(1, (2, -1, 2)).mT.flatten(-2).unbind(1)
        mean = shown * self.mirrored + scale * change
        precision = ((self.level + certainty).exp() / scale.square()).clamp(max=self.config.least_deviation**-2)
        constant = (0.5 * precision.log() - precision * mean.square()).sum((1, 2))[:, None]
        temperature = self.temperature.exp() / self.config.length**0.5
        predicted = temperature * torch.cat([-precision.flatten(1), (2 * precision * mean).flatten(1), constant], 1)
        facing = shown.flip(-1)  # the neighbour reads the common border the other way
        ones = torch.ones_like(constant)
        # Rare content counts more when it fits.
        rare = self.rare(maps.mean(-1)).float()
        own, answer = self.embed(maps).float().chunk(2, 1)
        return EdgeCompatibility(
            torch.cat([predicted, rare, 0.1 * own.flatten(1)], 1),
            torch.cat([facing.square().flatten(1), facing.flatten(1), ones, ones, answer.flip(-1).flatten(1)], 1),
            self.alone + 0.0,  # not a parameter any more, where no gradients are wanted
            self.odds[gap],
            gap,
        )

    @torch.no_grad()
    def compare(
        self, pixels: Float[Tensor, "n 3 h w"], borders: Borders, config: ComparisonConfig = DEFAULT
    ) -> EdgeCompatibility:
        """Compare all sides; whether pieces lost pixels follows from how well the best `borders` fit."""
        if len(borders) <= config.many_sides:
            best = borders.best(1, config.edges).score
        else:
            every = torch.arange(len(borders), device=pixels.device)
            best = borders.scores(every[:: len(borders) // config.sampled_sides], every).amin(1)
        worn = best.numel() > 0 and float(best.median()) > config.worn_score
        gap = min(config.gap, self.config.widest_gap) if worn else 0
        parts: list[EdgeCompatibility] = [self(block, gap) for block in pixels.split(config.pieces_at_once)]
        predicted = torch.cat([part.predicted for part in parts])
        observed = torch.cat([part.observed for part in parts])
        if borders.oblong:
            # Two more columns, whose products exclude that an upright side touches a level one.
            marks = torch.eye(2).repeat(len(predicted) // 2, 1).to(predicted)
            predicted, observed = torch.cat([predicted, NEVER * marks], 1), torch.cat([observed, marks.flip(1)], 1)
        return EdgeCompatibility(predicted, observed, parts[0].alone, parts[0].odds, gap)


@cache
def _load(folder: Path) -> EdgeModel:
    return EdgeModel.from_pretrained(folder)


def side_strips(pixels: Float[Tensor, "n 3 h w"], config: EdgeModelConfig) -> Float[Tensor, "sides 3 d l"]:
    """Pixels along every side, from the outermost line inwards, resampled to `length`; pieces may be of any size."""
    sides = []
    for side in range(SIDES):
        strips = torch.rot90(pixels, side, (-2, -1))[..., -config.depth :].flip(-1).mT
        lacking = config.depth - strips.shape[2]
        strips = torch.cat([strips, strips[:, :, -1:].expand(-1, -1, lacking, -1)], 2).flatten(1, 2)
        if strips.shape[-1] != config.length:
            strips = F.interpolate(strips, config.length, mode="linear", align_corners=False)
        sides.append(strips.unflatten(1, (3, config.depth)))
    return torch.stack(sides, 1).flatten(0, 1)
