"""A denoiser that knows pictures: it scores every cell and turn of any board for every piece, content alone.

Tokens are pieces in their four turned views: token (i, k) stands for "piece i, turned clockwise by k quarters". All
weights are shared by the views, so turning a piece only shifts its tokens, and logit(cell, k) with them: exactly
equivariant. X̂₀ is the expectation of (x, y, cos θ, sin θ) under the softmax over cells × turns.

Shapes: b puzzles of n pieces each on one board of c cells; N = 4 n tokens, token 4 i + k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from backbone import Backbone
from jaxtyping import Float
from torch import Tensor, nn

PIXELS = 32
STRIP = 4
RIM = 2
BLOCKS = (7, 10)
"""the backbone's blocks whose maps are used; pieces are seen at 32 pixels"""
SHOWN = (80 + 112) * 4
FREQUENCIES = 12


@dataclass(frozen=True)
class ContentConfig:
    """What the network is made of."""

    encoder: str = "backbone"
    """patch: learned from nothing; backbone: frozen pretrained features; both: side by side"""
    features: int = 256
    width: int = 192
    layers: int = 6
    heads: int = 6
    feed: int = 3
    """width of the feed-forward part over the width of the tokens"""
    sides: bool = False
    """attention heads that compare what the pieces show at their sides, learned, the same in all layers"""
    side_width: int = 64
    selfcond: bool = True
    """hear the distribution that was predicted a step before"""
    times: int = 300
    place_width: int = 192


def turned_views(pixels: Float[Tensor, "m 3 s s"]) -> Float[Tensor, "m4 3 s s"]:
    """Each piece turned clockwise by 0, 1, 2, 3 quarters, one after the other."""
    return torch.stack([torch.rot90(pixels, -k, (-2, -1)) for k in range(4)], 1).flatten(0, 1)


@dataclass
class Look:
    """The turned views of m/4 pieces: their pattern, without colour and contrast, and these two apart."""

    views: Float[Tensor, "m 3 s s"]
    light: Float[Tensor, "m 4"]

    def strips(self) -> tuple[Float[Tensor, "m p"], Float[Tensor, "m p"]]:
        """The pixels along the right and the left side of each view, the outermost column first, with their light."""
        scale = (self.light[:, 3:] + 0.1)[..., None, None].to(self.views)
        colour = self.light[:, :3, None, None].to(self.views)
        right = self.views[..., -STRIP:].flip(-1) * scale + colour
        left = self.views[..., :STRIP] * scale + colour
        return right.flatten(1), left.flatten(1)

    def rim(self) -> Float[Tensor, "m p"]:
        """The outermost pixels along the four sides of each view."""
        v = self.views
        sides = v[..., :RIM], v[..., -RIM:].flip(-1), v[..., :RIM, :].mT, v[..., -RIM:, :].flip(-2).mT
        return torch.cat([side.flatten(1) for side in sides], 1)


def look_at(pixels: Float[Tensor, "n 3 s s"], dtype: torch.dtype) -> Look:
    """Colour and contrast taken out of the pieces, and these turned; colours in [0, 1]."""
    scaled = (pixels - 0.5) / 0.25
    colour = scaled.mean((2, 3), keepdim=True)
    centred = scaled - colour
    contrast = centred.square().mean((1, 2, 3), keepdim=True).sqrt()
    pattern = (centred / (contrast + 0.1)).to(dtype)
    light = torch.cat([colour.flatten(1), contrast.flatten(1)], 1)
    return Look(turned_views(pattern), light.repeat_interleave(4, 0))


def patches(maps: Float[Tensor, "m h w c"], kernel: int) -> Tensor:
    """Squares that don't overlap, each as one vector."""
    return maps.unflatten(2, (-1, kernel)).unflatten(1, (-1, kernel)).transpose(2, 3).flatten(3)


class PatchEncoder(nn.Module):
    """Patches of 4, then 8 pixels, then the whole view; mean colour and contrast are told apart."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.first = nn.Linear(48, 64)
        self.second = nn.Linear(256, 128)
        self.third = nn.Linear(2048 + 4, features)
        for layer in (self.first, self.second, self.third):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, look: Look) -> Float[Tensor, "m f"]:
        maps = F.gelu(self.first(patches(look.views.permute(0, 2, 3, 1), 4)))
        maps = F.gelu(self.second(patches(maps, 2))).flatten(1)
        return self.third(torch.cat([maps, look.light.to(maps)], 1))


class PieceEncoder(nn.Module):
    """One vector for each view of a piece: what the backbone shows of it, its own patches, and the pixels of its rim."""

    def __init__(self, config: ContentConfig) -> None:
        super().__init__()
        self.config = config
        width = 0
        if config.encoder in ("patch", "both"):
            self.patch = PatchEncoder(config.features)
            width += config.features
        if config.encoder in ("backbone", "both"):
            self.shown_norm = nn.LayerNorm(SHOWN)
            self.shown = nn.Linear(SHOWN + 4, config.features)
            self.rim = nn.Linear(4 * RIM * PIXELS * 3, config.features // 2)
            width += config.features + config.features // 2
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Sequential(nn.GELU(), nn.Linear(width, config.features), nn.LayerNorm(config.features))

    def forward(self, look: Look, maps: Float[Tensor, "m p"] | None = None) -> Float[Tensor, "m f"]:
        """`maps` are the frozen backbone's, if it is used: `show` makes them."""
        parts = []
        if self.config.encoder != "backbone":
            parts.append(self.patch(look))
        if self.config.encoder != "patch":
            assert maps is not None
            parts.append(self.shown(torch.cat([self.shown_norm(maps), look.light.to(maps)], 1)))
            parts.append(self.rim(look.rim().to(maps)))
        return self.mix(self.norm(torch.cat(parts, -1)))


@torch.no_grad()
def show(backbone: Backbone, pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "m p"]:
    """The frozen backbone's maps of each view of pieces of 32 pixels with colours in [0, 1], flat."""
    dtype = next(backbone.parameters()).dtype
    parts = []
    for group in turned_views(pixels.to(dtype)).split(288):
        early = backbone(group, BLOCKS[0])
        late = backbone.onward(early, BLOCKS[0] + 1, BLOCKS[1])
        parts.append(torch.cat([early.contiguous().flatten(1), late.contiguous().flatten(1)], 1))
    return torch.cat(parts).float()


def board_places(rows: int, cols: int) -> Float[Tensor, "c 2"]:
    """Centre (x, y) of every cell, row by row; the longer side spans [−1, 1]."""
    row, col = torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")
    doubled = torch.stack([2 * col + 1 - cols, 2 * row + 1 - rows], -1).reshape(-1, 2)
    return doubled / max(rows, cols)


def turn_codes() -> Float[Tensor, "4 2"]:
    """(cos θ, sin θ) of the four turns."""
    return torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])


def place_features(rows: int, cols: int) -> Float[Tensor, "c q"]:
    """What is told of every cell: where it lies, in waves, how far from each border, and the board's shape."""
    row, col = torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")
    row, col = row.flatten().float(), col.flatten().float()
    wave = math.pi * torch.arange(1, FREQUENCIES + 1)
    parts = []
    for place, count in ((row, rows), (col, cols)):
        share = (place[:, None] + 0.5) / count
        parts += [(share * wave).sin(), (share * wave).cos()]
        parts += [(-place)[:, None].exp(), (place - count + 1)[:, None].exp()]
    shape = torch.tensor([math.log(rows) / 3, math.log(cols) / 3]).expand(rows * cols, 2)
    return torch.cat([*parts, board_places(rows, cols), shape], 1)


PLACE_FEATURES = 4 * FREQUENCIES + 4 + 2 + 2


class Layer(nn.Module):
    """Attention among all tokens of a puzzle (UniMP on a complete graph), exchange among a piece's views, feed forward."""

    def __init__(self, config: ContentConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.sided = config.sides
        if config.sides:
            self.said = nn.Linear(width, 4 * 32)
            self.heard = nn.Linear(4 * 32, width)
        self.piece_norm = nn.LayerNorm(width)
        self.piece = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, config.feed * width), nn.GELU(), nn.Linear(config.feed * width, width)
        )

    def forward(self, x: Float[Tensor, "b N w"], near: Float[Tensor, "b 4 N N"] | None) -> Float[Tensor, "b N w"]:
        h = self.norm(x)
        q, k, v = self.qkv(h).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        score = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
        heard = (torch.softmax(score, -1, dtype=score.dtype) @ v).transpose(1, 2).flatten(2)
        x = x + self.out(heard)
        if self.sided:
            assert near is not None
            values = self.said(h).unflatten(-1, (4, 32)).transpose(1, 2)  # b 4 N 32
            x = x + self.heard((near @ values.to(near)).transpose(1, 2).flatten(2))
        whole = self.piece(self.piece_norm(x).unflatten(1, (-1, 4)).mean(2))
        x = x + whole.repeat_interleave(4, 1)
        return x + self.feed(self.feed_norm(x))


class SideMatching(nn.Module):
    """How well view l of a piece continues view k of another to the right, from the pixels along the two sides.

    Other directions are the same question asked of both views turned, so one comparison serves all four.
    """

    def __init__(self, config: ContentConfig) -> None:
        super().__init__()
        self.right = nn.Sequential(
            nn.Linear(PIXELS * STRIP * 3 + config.features, 192), nn.GELU(), nn.Linear(192, config.side_width)
        )
        self.left = nn.Sequential(
            nn.Linear(PIXELS * STRIP * 3 + config.features, 192), nn.GELU(), nn.Linear(192, config.side_width)
        )
        self.sharpness = nn.Parameter(torch.tensor(2.5))
        self.nobody = nn.Parameter(torch.tensor(2.0))

    def forward(self, look: Look, features: Float[Tensor, "m f"], puzzles: int) -> Float[Tensor, "b 4 N N1"]:
        """Logits of who lies right of, below, left of and above each token; the last column says "nobody"."""
        right, left = (torch.cat([strip.to(features), features], 1) for strip in look.strips())
        a = F.normalize(self.right(right).float(), dim=-1).unflatten(0, (puzzles, -1))
        b = F.normalize(self.left(left).float(), dim=-1).unflatten(0, (puzzles, -1))
        score = self.sharpness.exp() * (a @ b.transpose(1, 2))
        count = score.shape[1] // 4
        own = torch.eye(count, device=score.device).repeat_interleave(4, 0).repeat_interleave(4, 1).bool()
        score = score.masked_fill(own, -1e4)
        grid = score.unflatten(1, (count, 4)).unflatten(3, (count, 4))  # b i k j l
        # Below (i,k) is right of (i,k-1): rolling by d turns both views back by d.
        ways = torch.stack([grid.roll((d, d), (2, 4)) for d in range(4)], 1).flatten(4, 5).flatten(2, 3)
        nobody = self.nobody.expand(*ways.shape[:-1], 1)
        return torch.cat([ways, nobody], -1)


@dataclass
class Condition:
    """All that stays the same while poses are denoised."""

    features: Float[Tensor, "b N f"]
    near: Float[Tensor, "b 4 N N"] | None
    side_logits: Float[Tensor, "b 4 N N1"] | None
    alone: Float[Tensor, "b n c4"]
    """logits of every cell and turn from each piece alone, cell-major"""
    places: Float[Tensor, "c w"]
    """learned embedding of every cell"""
    waves: Float[Tensor, "c q"]
    """what is told of every cell"""
    rows: int
    cols: int


class ContentNetwork(nn.Module):
    """Logits of cell × turn for every piece of puzzles of one board, from content, noisy poses and time."""

    def __init__(self, config: ContentConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.encoder = PieceEncoder(config)
        self.sides = SideMatching(config) if config.sides else None
        self.place = nn.Sequential(nn.Linear(PLACE_FEATURES, 256), nn.GELU(), nn.Linear(256, config.place_width))
        self.alone = nn.Sequential(nn.Linear(config.features, 256), nn.GELU(), nn.Linear(256, config.place_width))
        self.alone_bias = nn.Linear(config.place_width, 1)
        self.token = nn.Linear(config.features, width)
        self.state = nn.Sequential(nn.Linear(4 + 16 + 3 + 1, 64), nn.GELU(), nn.Linear(64, width))
        if config.selfcond:
            self.before = nn.Linear(config.place_width + PLACE_FEATURES + 1, width)
        self.first_guess = nn.Linear(config.place_width + PLACE_FEATURES + 1, width)
        self.stack = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, config.place_width)
        self.bias = nn.Linear(config.place_width, 1)
        self.sure = nn.Linear(width, 1)
        scale = 1000 / config.times
        beta = torch.linspace(1e-4 * scale, 0.02 * scale, config.times + 1, dtype=torch.double)[1:].clamp(max=0.9999)
        self.register_buffer(
            "alpha_bar", torch.cat([torch.ones(1), torch.cumprod(1 - beta, 0).float()]), persistent=False
        )

    def condition(
        self, pixels: Float[Tensor, "b n 3 s s"], rows: int, cols: int, maps: Float[Tensor, "m p"] | None = None
    ) -> Condition:
        """Encode the pieces of puzzles of one board; `maps` from `show`, where the backbone is used."""
        puzzles, count = pixels.shape[:2]
        dtype = torch.bfloat16 if torch.is_autocast_enabled("cpu") else pixels.dtype
        look = look_at(pixels.flatten(0, 1), dtype)
        features = self.encoder(look, maps)
        waves = place_features(rows, cols)
        places = self.place(waves)
        side_logits = near = None
        if self.sides is not None:
            side_logits = self.sides(look, features, puzzles)
            near = side_logits.softmax(-1)[..., :-1].to(features.dtype)
        alone = self.alone(features).unflatten(0, (puzzles, count, 4))
        logits = alone @ places.T.to(alone) / 8 + self.alone_bias(places).squeeze(-1)
        logits = logits.transpose(2, 3).flatten(2).float()
        return Condition(features.unflatten(0, (puzzles, -1)), near, side_logits, logits, places, waves, rows, cols)

    def forward(
        self,
        noisy: Float[Tensor, "b n 4"],
        time: Float[Tensor, "b"],
        condition: Condition,
        before: Float[Tensor, "b n c4"] | None = None,
    ) -> Float[Tensor, "b n c4"]:
        """Logits of every cell and turn (cell-major, 4 × cell + turn); `before` is the last step's distribution."""
        puzzles, count = noisy.shape[:2]
        codes = turn_codes().to(noisy)
        c, s = noisy[..., 2:3], noisy[..., 3:4]
        # The noisy rotation as seen from each view: (1, 0) where the view agrees with it.
        cosine = c * codes[:, 0] + s * codes[:, 1]
        sine = s * codes[:, 0] - c * codes[:, 1]
        place = noisy[:, :, None, :2].expand(-1, -1, 4, -1)
        share = time / self.config.times
        level = self.alpha_bar[time.long()].sqrt()
        wave = share[:, None] * math.pi * torch.arange(1, 9).to(noisy)
        board = torch.tensor([math.log(condition.rows) / 3, math.log(condition.cols) / 3]).to(noisy)
        given = torch.full((1,), count / (condition.rows * condition.cols)).to(noisy)
        known = torch.cat([wave.sin(), wave.cos(), level[:, None], torch.cat([board, given]).expand(puzzles, -1)], 1)
        known = known[:, None, None].expand(-1, count, 4, -1)
        state = torch.cat([place, cosine[..., None], sine[..., None], known], -1)
        x = self.token(condition.features) + self.state(state).flatten(1, 2)
        x = x + self.first_guess(self._expected(condition.alone.detach().softmax(-1), condition))
        if self.config.selfcond and before is not None:
            x = x + self.before(self._expected(before, condition))
        for layer in self.stack:
            x = layer(x, condition.near)
        x = self.norm(x)
        places = condition.places
        logits = self.score(x) @ places.T.to(x) / 8 + self.bias(places).squeeze(-1) + self.sure(x)
        return logits.unflatten(1, (count, 4)).transpose(2, 3).flatten(2).float()

    def _expected(self, chance: Float[Tensor, "b n c4"], condition: Condition) -> Float[Tensor, "b N w1"]:
        """What a distribution says of each token: how probable its turn is, and the expected place with it."""
        by_turn = chance.unflatten(-1, (-1, 4)).transpose(2, 3).flatten(1, 2)  # b N c
        places = torch.cat([condition.places, condition.waves], 1).to(by_turn)
        return torch.cat([by_turn @ places, 4 * by_turn.sum(-1, keepdim=True)], -1)


def codes_of(rows: int, cols: int) -> Float[Tensor, "c4 4"]:
    """(x, y, cos θ, sin θ) of every cell and turn, cell-major."""
    places, turns = board_places(rows, cols), turn_codes()
    return torch.cat([places.repeat_interleave(4, 0), turns.repeat(rows * cols, 1)], 1)


@torch.no_grad()
def denoise(
    network: ContentNetwork,
    condition: Condition,
    start: Float[Tensor, "b n 4"],
    steps: int,
    sharpen: float = 1.0,
    selfcond: bool = True,
) -> list[Float[Tensor, "b n c4"]]:
    """DDIM from noise: the log probabilities of cell × turn predicted at every step."""
    codes = codes_of(condition.rows, condition.cols)
    times = torch.linspace(network.config.times, 0, steps + 1).round().long().tolist()
    current, before, answers = start, None, []
    for now, after in zip(times[:-1], times[1:], strict=True):
        time = torch.full((len(start),), float(now))
        logits = network(current, time, condition, before if selfcond else None)
        answers.append(logits.log_softmax(-1))
        chance = (sharpen * logits).softmax(-1)
        before = logits.softmax(-1)
        clean = chance @ codes
        here, there = network.alpha_bar[now], network.alpha_bar[after]
        noise = (current - here.sqrt() * clean) / (1 - here).sqrt()
        current = there.sqrt() * clean + (1 - there).sqrt() * noise
    return answers
