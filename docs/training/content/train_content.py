"""Train the content network on an endless stream of puzzles; resumable, one CSV row a validation."""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from backbone import Backbone
from content_model import ContentConfig, ContentNetwork, codes_of, denoise, show
from pictures import HELD, held_apart, load, resized
from safetensors.torch import load_file, save_file
from scipy.optimize import linear_sum_assignment
from torch import Tensor

SIZE = 32
COUNTS = {"faces": 5000, "paintings": 4500, "photos": 260}


@dataclass(frozen=True)
class TrainConfig:
    """How a run learns."""

    folders: str = "faces,paintings,photos"
    shares: str = "0.47,0.47,0.06"
    pieces: int = 576
    minutes: float = 10.0
    rate: float = 1e-3
    ema: float = 0.998
    favourite: float = 0.4
    """share of batches of 6×6"""
    grids: str = "3,14"
    whole: float = 0.5
    """share of batches without missing pieces"""
    missing: float = 0.4
    crop: float = 0.8
    jitter: float = 0.2
    all_noise: float = 0.3
    """share of puzzles at the last time, where nothing is known"""
    power: float = 1.0
    """other times are T · u^(1/power)"""
    twice: float = 0.5
    """share of batches with a first prediction to be conditioned on"""
    alone_weight: float = 0.3
    side_weight: float = 0.3
    regression_weight: float = 0.1
    seed: int = 0
    validate: float = 2.5
    """minutes of own time between validations"""
    passed: float = 0.0
    """minutes of the schedule that are over at the start"""
    held: int = 48
    data_parallel: int = 1
    start: str = ""
    """a run whose weights are taken over, where shapes agree"""


class Stream:
    """Batches of puzzles from cached pieces and maps, each a function of (seed, step) and of what is cached."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.held: dict[str, Tensor] = {}
        self.sets: dict[tuple[int, int], list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]] = {}
        self.names: set[str] = set()
        for folder in config.folders.split(","):
            every = held_apart(COUNTS[folder], HELD[folder]).nonzero().flatten().tolist()
            self.held[folder] = load(folder, chosen=every[:: max(1, len(every) // config.held)][: config.held])
        self.refresh()

    def refresh(self) -> None:
        """Take up what was cached since."""
        for path in sorted(Path("cache").glob("pieces_*.maps.npy")):
            stem = path.name.removesuffix(".maps.npy")
            _, folder, grid, variant, first = stem.split("_") if not stem.endswith(".part") else [""] * 5
            if stem in self.names or folder not in self.config.folders.split(","):
                continue
            self.names.add(stem)
            board = tuple(int(x) for x in grid.split("x"))
            maps, pixels = np.load(path, mmap_mode="r"), np.load(path.with_name(stem + ".pixels.npy"), mmap_mode="r")
            apart = held_apart(COUNTS[folder], HELD[folder]).numpy()[int(first) : int(first) + len(maps)]
            self.sets.setdefault(board, []).append((folder, maps, pixels, np.flatnonzero(~apart)))
            print("cache", stem, flush=True)

    def batch(self, step: int) -> tuple[Tensor, Tensor, Tensor, int, int, Tensor]:
        """Pixels, cells, turns, rows, columns and the backbone's maps."""
        config = self.config
        random = np.random.default_rng((config.seed, step))
        boards = sorted(self.sets)
        others = [b for b in boards if b != (6, 6)]
        rows, cols = (6, 6)
        if others and random.random() >= config.favourite:
            rows, cols = others[random.integers(len(others))]
        missing = 0.0 if random.random() < config.whole else random.uniform(0, config.missing)
        count = max(1, round(rows * cols * (1 - missing)))
        sets = self.sets[rows, cols]
        shares = dict(zip(config.folders.split(","), (float(x) for x in config.shares.split(",")), strict=True))
        present = sorted({s[0] for s in sets})
        chance = np.array([shares[f] for f in present])
        pixels, maps, cells, turns = [], [], [], []
        for _ in range(max(1, config.pieces // (rows * cols))):
            folder = present[random.choice(len(present), p=chance / chance.sum())]
            own = [s for s in sets if s[0] == folder]
            sizes = np.array([len(s[3]) for s in own])
            _, all_maps, all_pixels, good = own[random.choice(len(own), p=sizes / sizes.sum())]
            picture = good[random.integers(len(good))]
            cell = random.permutation(rows * cols)[:count]
            turn = random.integers(0, 4, count)
            tile = torch.from_numpy(all_pixels[picture][cell])
            for k in range(1, 4):
                chosen = torch.from_numpy(turn == k)
                tile[chosen] = torch.rot90(tile[chosen], k, (-2, -1))
            views = (np.arange(4) - turn[:, None]) % 4
            maps.append(torch.from_numpy(all_maps[picture][cell[:, None], views]).flatten(0, 1))
            pixels.append(tile)
            cells.append(torch.from_numpy(cell))
            turns.append(torch.from_numpy(turn))
        return (
            torch.stack(pixels).float() / 255,
            torch.stack(cells),
            torch.stack(turns),
            rows,
            cols,
            torch.cat(maps).float(),
        )


def cut(
    pictures: list[Tensor], rows: int, cols: int, missing: float, random: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Pieces (b n 3 s s) of pictures in random order and turns, with their true cells and turns (b n)."""
    count = max(1, round(rows * cols * (1 - missing)))
    pixels, cells, turns = [], [], []
    for picture in pictures:
        whole = (resized(picture, rows * SIZE, cols * SIZE) * 255).round() / 255
        tiles = whole.reshape(3, rows, SIZE, cols, SIZE).permute(1, 3, 0, 2, 4).reshape(-1, 3, SIZE, SIZE)
        cell = torch.from_numpy(random.permutation(rows * cols)[:count])
        turn = torch.from_numpy(random.integers(0, 4, count))
        tile = tiles[cell]
        for k in range(1, 4):
            tile[turn == k] = torch.rot90(tile[turn == k], k, (-2, -1))
        pixels.append(tile)
        cells.append(cell)
        turns.append(turn)
    return torch.stack(pixels), torch.stack(cells), torch.stack(turns)


def side_targets(cells: Tensor, turns: Tensor, rows: int, cols: int) -> Tensor:
    """For every token and direction (right, below, left, above) the token there, or N for nobody: (b 4 N)."""
    puzzles, count = cells.shape
    owner = torch.full((puzzles, rows + 2, cols + 2), -1)
    row, col = cells // cols + 1, cells % cols + 1
    index = torch.arange(puzzles)[:, None].expand_as(cells)
    owner[index, row, col] = torch.arange(count).expand_as(cells)
    ways = ((0, 1), (1, 0), (0, -1), (-1, 0))
    beside = torch.stack([owner[index, row + dr, col + dc] for dr, dc in ways], -1)  # b n 4, true directions
    view = torch.arange(4)
    more = (view - turns[..., None]) % 4  # b n k: how far the view is turned beyond the truth
    answer = []
    for way in range(4):
        other = beside.gather(2, (way - more) % 4)  # b n k
        other_turn = turns.gather(1, other.clamp(min=0).flatten(1)).view_as(other)
        token = 4 * other + (other_turn + more) % 4
        answer.append(torch.where(other < 0, 4 * count, token).flatten(1))
    return torch.stack(answer, 1)


def loss_of(
    network: ContentNetwork, batch: tuple, config: TrainConfig, random: np.random.Generator
) -> tuple[Tensor, dict[str, float]]:
    """The loss on a batch, and its parts."""
    pixels, cells, turns, rows, cols, maps = batch
    puzzles, count = cells.shape
    target = 4 * cells + turns
    codes = codes_of(rows, cols)
    clean = codes[target]
    share = random.random(puzzles) ** (1 / config.power)
    share[random.random(puzzles) < config.all_noise] = 1.0
    time = torch.from_numpy(np.ceil(share * network.config.times).clip(1)).float()
    noise = torch.from_numpy(random.standard_normal(clean.shape)).float()
    level = network.alpha_bar[time.long()][:, None, None]
    noisy = level.sqrt() * clean + (1 - level).sqrt() * noise
    parts: dict[str, float] = {}
    with torch.autocast("cpu", torch.bfloat16):
        condition = network.condition(pixels, rows, cols, maps)
        before = None
        if network.config.selfcond and random.random() < config.twice:
            with torch.no_grad():
                before = network(noisy, time, condition).softmax(-1)
        logits = network(noisy, time, condition, before)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    parts["ce"] = float(loss.detach())
    alone = F.cross_entropy(condition.alone.flatten(0, 1), target.flatten())
    parts["alone"] = float(alone.detach())
    loss = loss + config.alone_weight * alone
    if config.regression_weight:
        loss = loss + config.regression_weight * (logits.softmax(-1) @ codes - clean).square().sum(-1).mean()
    if condition.side_logits is not None:
        wanted = side_targets(cells, turns, rows, cols)
        sided = F.cross_entropy(condition.side_logits.flatten(0, 2), wanted.flatten())
        parts["sides"] = float(sided.detach())
        loss = loss + config.side_weight * sided
    return loss, parts


def assigned(chance: Tensor, cells: int) -> tuple[Tensor, Tensor]:
    """One piece a cell: the assignment with the largest sum of log probabilities, each piece at its best turn there."""
    best, turn = chance.unflatten(-1, (cells, 4)).max(-1)
    row, col = linear_sum_assignment(-best.numpy())
    cell = torch.empty(len(best), dtype=torch.long)
    cell[row] = torch.from_numpy(col)
    return cell, turn[torch.arange(len(best)), cell]


def turned_board(cells: Tensor, turns: Tensor, rows: int, cols: int, by: int) -> tuple[Tensor, Tensor]:
    """A placement after turning the whole board clockwise by `by` quarters (square boards, or by 2)."""
    row, col = cells // cols, cells % cols
    for _ in range(by):
        row, col, rows, cols = col, rows - 1 - row, cols, rows
    return row * cols + col, (turns + by) % 4


def right_share(
    answer: tuple[Tensor, Tensor], cells: Tensor, turns: Tensor, rows: int, cols: int
) -> tuple[float, float]:
    """Share of right pieces, absolute and at the best turn of the whole."""
    scores = []
    for by in range(4) if rows == cols else (0, 2):
        cell, turn = turned_board(*answer, rows, cols, by)
        scores.append(float(((cell == cells) & (turn == turns)).float().mean()))
    return scores[0], max(scores)


@torch.no_grad()
def validate(
    network: ContentNetwork,
    backbone: Backbone | None,
    pictures: Tensor,
    rows: int,
    cols: int,
    missing: float,
    steps: int,
    *,
    start_scale: float = 1.0,
    sharpen: float = 1.0,
    selfcond: bool = True,
    every: bool = False,
    seed: int = 77,
) -> dict[str, float]:
    """Percent right after assignment: each piece alone, first prediction, last prediction (absolute and free)."""
    network.eval()
    names = ("alone", "first", "last", "last_free")
    sums = dict.fromkeys(names, 0.0)
    curve = np.zeros(steps)
    at_once = max(1, 576 // (rows * cols))
    for start in range(0, len(pictures), at_once):
        group = [p.float() / 255 for p in pictures[start : start + at_once]]
        group = [centred(p, rows, cols) for p in group]
        random = np.random.default_rng((seed, start))
        pixels, cells, turns = cut(group, rows, cols, missing, random)
        with torch.autocast("cpu", torch.bfloat16):
            maps = None if backbone is None else show(backbone, pixels.flatten(0, 1))
            condition = network.condition(pixels, rows, cols, maps)
            noise = start_scale * torch.from_numpy(random.standard_normal((*cells.shape, 4))).float()
            answers = denoise(network, condition, noise, steps, sharpen, selfcond)
        for i in range(len(group)):

            def score(chance: Tensor) -> tuple[float, float]:
                return right_share(assigned(chance[i], rows * cols), cells[i], turns[i], rows, cols)

            sums["alone"] += score(condition.alone.log_softmax(-1))[0]
            sums["first"] += score(answers[0])[0]
            last, free = score(answers[-1])
            sums["last"] += last
            sums["last_free"] += free
            if every:
                curve += [score(answer)[0] for answer in answers]
    network.train()
    result = {name: 100 * value / len(pictures) for name, value in sums.items()}
    return result if not every else {**result, "curve": (100 * curve / len(pictures)).round(1).tolist()}


def centred(picture: Tensor, rows: int, cols: int) -> Tensor:
    """The largest centred part of the board's shape."""
    height, width = picture.shape[-2:]
    unit = min(height / rows, width / cols)
    h, w = round(unit * rows), round(unit * cols)
    top, left = (height - h) // 2, (width - w) // 2
    return picture[:, top : top + h, left : left + w]


def save(folder: Path, state: dict, network_config: ContentConfig, config: TrainConfig, average: dict) -> None:
    torch.save(state, folder / "state.tmp")
    os.replace(folder / "state.tmp", folder / "state.pt")
    save_file({k: v.contiguous() for k, v in average.items()}, folder / "model.tmp")
    os.replace(folder / "model.tmp", folder / "model.safetensors")
    (folder / "config.json").write_text(
        json.dumps({"model": asdict(network_config), "training": asdict(config)}, indent=1)
    )


def load_network(folder: str | Path) -> tuple[ContentNetwork, Backbone | None]:
    """The averaged network of a run, and the backbone if it needs one."""
    config = ContentConfig(**json.loads((Path(folder) / "config.json").read_text())["model"])
    network = ContentNetwork(config)
    network.load_state_dict(load_file(Path(folder) / "model.safetensors"))
    return network, make_backbone(config)


def make_backbone(config: ContentConfig) -> Backbone | None:
    return None if config.encoder == "patch" else Backbone.pretrained().bfloat16()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    for part in (ContentConfig, TrainConfig):
        for field in fields(part):
            kind = type(field.default)
            parser.add_argument(
                f"--{field.name}", type=(lambda x: x == "1") if kind is bool else kind, default=field.default
            )
    given = vars(parser.parse_args())
    network_config = ContentConfig(**{f.name: given[f.name] for f in fields(ContentConfig)})
    config = TrainConfig(**{f.name: given[f.name] for f in fields(TrainConfig)})
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    folder = Path("runs") / given["name"]
    folder.mkdir(parents=True, exist_ok=True)
    network = ContentNetwork(network_config)
    average = {k: v.clone() for k, v in network.state_dict().items()}
    backbone = make_backbone(network_config)
    decay = [p for p in network.parameters() if p.ndim > 1]
    plain = [p for p in network.parameters() if p.ndim <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}],
        lr=config.rate,
        betas=(0.9, 0.98),
    )
    step, elapsed, puzzles = 0, 0.0, 0
    if (folder / "state.pt").exists():
        state = torch.load(folder / "state.pt", weights_only=True)
        network.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        average, step, elapsed, puzzles = state["average"], state["step"], state["elapsed"], state["puzzles"]
    elif config.start:
        taken = load_file(Path(config.start) / "model.safetensors")
        own = network.state_dict()
        network.load_state_dict(
            {k: taken[k] if k in taken and taken[k].shape == v.shape else v for k, v in own.items()}
        )
        average = {k: v.clone() for k, v in network.state_dict().items()}
    stream = Stream(config)
    print(sum(p.numel() for p in network.parameters()), "parameters", flush=True)
    log = (folder / "log.csv").open("a", newline="")
    writer = csv.writer(log)
    # Other work may take the machine for long: the rate follows the clock to the end, all else the own time.
    wall, own = time.time(), time.process_time() - 60 * elapsed
    saved = validated = elapsed
    sums: dict[str, float] = {}
    steps_marked = step
    network.train()
    while True:
        share = min(1.0, (config.passed + (time.time() - wall) / 60) / config.minutes)
        rate = config.rate * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        batch = stream.batch(step)
        loss, parts = loss_of(network, batch, config, np.random.default_rng((config.seed, step, 1)))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        keep = min(config.ema, (1 + step) / (10 + step))
        with torch.no_grad():
            for key, value in network.state_dict().items():
                average[key].lerp_(value, 1 - keep)
        step, puzzles = step + 1, puzzles + len(batch[0])
        for key, value in parts.items():
            sums[key] = sums.get(key, 0.0) + value
        elapsed = (time.process_time() - own) / 60
        over = share >= 1.0
        if elapsed - saved >= 0.5 or over:
            saved = elapsed
            state = {
                "network": network.state_dict(),
                "optimiser": optimiser.state_dict(),
                "average": average,
                "step": step,
                "elapsed": elapsed,
                "puzzles": puzzles,
            }
            save(folder, state, network_config, config, average)
            means = {k: round(v / (step - steps_marked), 3) for k, v in sums.items()}
            sums, steps_marked = {}, step
            scores = {}
            if elapsed - validated >= config.validate or over:
                probe = ContentNetwork(network_config)
                probe.load_state_dict(average)
                for name, pictures in stream.held.items():
                    for missing in (0.0, 0.3) if over else (0.0,):
                        found = validate(probe, backbone, pictures[:: 1 if over else 2], 6, 6, missing, 6)
                        scores[f"{name}{'-30' if missing else ''}"] = {k: round(v, 1) for k, v in found.items()}
                own = time.process_time() - 60 * elapsed  # validation is not counted as learning
                validated = elapsed
            clock = time.strftime("%H:%M", time.gmtime())
            writer.writerow([clock, step, f"{elapsed:.2f}", puzzles, json.dumps(means), json.dumps(scores)])
            log.flush()
            print(clock, step, f"{elapsed:.1f} CPU min", puzzles, means, scores or "", flush=True)
            stream.refresh()
        if over:
            break


if __name__ == "__main__":
    sys.path.insert(0, "site")
    main()
