"""What every heuristic of `mend` is worth: each is switched off once, alone, on training data.

    python benchmarks/fragment_heuristics.py /data/breaking_bad --objects 16 --seed 0 --out heuristics.json

Objects are one fracture of each class of Breaking Bad's training objects, in 6 to 8 pieces (`plain`), and made solids
that no network learnt from (`damaged`: noise, erosion, missing pieces, a foreign piece; `many`: 18 pieces), and cases
for one heuristic each. Variants share the searches that they have in common; the seconds of a shared search count for
each. A row is the difference to the full configuration on the same objects, with its 95 % interval.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diffassemble.assembly import scoring
from diffassemble.core import Mesh, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import seeded
from diffassemble.core.thresholds import SURE
from diffassemble.evaluation.metrics import euler_error
from diffassemble.fragments import assembly_state, matches, mend
from diffassemble.fragments.breaking import scatter
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.damage import Damage
from diffassemble.fragments.datasets import HELD_OUT, break_solids, find_fractures
from diffassemble.fragments.matches import MATCHING, MatchingConfig, PairSearch, prepare
from diffassemble.fragments.mend import MEND, MendConfig, MendSolver
from diffassemble.fragments.model import FractureModels

Configs = tuple[MendConfig, MatchingConfig]


def without(**fields: Any) -> Configs:
    return replace(MEND, **fields), MATCHING


def without_round(*numbers: int, **fields: Any) -> Configs:
    changed = {number: replace(MEND.rounds[number], **fields or {"partners": 0}) for number in numbers}
    return without(rounds=tuple(changed.get(number, one) for number, one in enumerate(MEND.rounds)))


def without_sliding() -> Configs:
    sliding = replace(MATCHING.verification.sliding, ceiling=1.0)
    verification = replace(MATCHING.verification, sliding=sliding)
    return without(state=replace(MEND.state, sliding=1.0))[0], replace(MATCHING, verification=verification)


VARIANTS: dict[str, Configs] = {
    "full": (MEND, MATCHING),
    "round 0: glance": without_round(0),
    "round 1: several partners": without_round(1),
    "round 2: finer": without_round(2),
    "gap insertion": without_round(2, insert=False),
    "round 3: doubtful breaks": without_round(3),
    "several partners": without_round(1, 2, partners=1),
    "prune unsupported joins": without(prune=False),
    "freedom (sliding)": without_sliding(),
    "rarity of contacts": without(state=replace(MEND.state, neighbours=math.inf)),
    "another anchor": without(replace_anchor=math.inf),
    "ceiling of estimated normals": without(estimated_ceiling=1.0),
    "units of length": without(screening=replace(mend.SCREENING, scale=None)),
    "copies": without(screening=replace(mend.SCREENING, copies=None)),
}
SPECIAL = {
    "foreign": ("prune unsupported joins", "another anchor"),
    "clouds": ("ceiling of estimated normals",),
    "unit": ("units of length",),
    "copy": ("copies",),
    "sawn": ("freedom (sliding)",),
}
"""groups of objects that are made for some heuristics, and are solved with these and in full only"""
EVERYWHERE = tuple(
    name for name in VARIANTS if name not in ("ceiling of estimated normals", "units of length", "copies")
)


@dataclass(frozen=True)
class Example:
    """A puzzle, the object that each piece is of, and the configurations that it is solved with."""

    group: str
    name: str
    puzzle: Puzzle
    whose: tuple[int, ...]

    @property
    def variants(self) -> tuple[str, ...]:
        return ("full", *SPECIAL[self.group]) if self.group in SPECIAL else EVERYWHERE


@dataclass(frozen=True)
class Result:
    """One object with one configuration: part accuracy (%), RMSE(R) (degrees), sure pieces, right ones of them."""

    variant: str
    group: str
    name: str
    part_accuracy: float
    rmse_r: float
    sure: int
    sure_right: int
    seconds: float


class Shared:
    """Keeps the results of the expensive functions of `mend`, and what each took, for all configurations."""

    def __init__(self) -> None:
        self.kept: dict[Any, tuple[Any, float]] = {}
        self.depth, self.saved = 0, 0.0

    def __call__(self, function: Callable[..., Any], key: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            known = (function.__name__, key(*given, **named))
            if known not in self.kept:
                began, saved = time.process_time(), self.saved
                self.depth += 1
                result = function(*given, **named)
                self.depth -= 1
                self.kept[known] = result, time.process_time() - began + self.saved - saved
            else:
                self.saved += self.kept[known][1]
            found = self.kept[known][0]
            return list(found) if isinstance(found, list) else found

        return call


def digest(*parts: Any) -> str:
    """A name for arrays and numbers."""
    total = hashlib.blake2b(digest_size=12)
    for part in parts:
        total.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return total.hexdigest()


def of_cluster(cluster: Cluster) -> str:
    return digest(*((id(cluster.fragments[piece]), cluster.poses[piece].round(9)) for piece in cluster.members))


def of_match(match: Any) -> str:
    return digest(match.pose.round(9), match.level, match.votes)


def share_searches(shared: Shared) -> None:
    """Let all configurations share what they search and verify alike."""

    def of_search(sides: Any, effort: Any, seed: int, config: Any) -> Any:
        own, other, spacing = sides
        return digest(own.points, other.points, own.body.points[:9], spacing, effort, seed, config)

    def of_clusters(first: Cluster, second: Cluster, *given: Any, **named: Any) -> Any:
        level, effort, _, seed, *more = given
        return digest(of_cluster(first), of_cluster(second), level, effort, seed, more, named)

    def of_verified(first: Cluster, second: Cluster, found: Any, models: Any, config: Any = MATCHING) -> Any:
        return digest(of_cluster(first), of_cluster(second), [of_match(match) for match in found], config)

    vars(matches)["search"] = shared(matches.search, of_search)
    for module in (matches, mend):
        vars(module)["match_clusters"] = shared(matches.match_clusters, of_clusters)
    verified = shared(matches.reverify, of_verified)
    for owner in (assembly_state, mend):
        vars(owner)["reverify"] = verified


class SameFragments:
    """Prepared fragments for every configuration of one puzzle; the results of its pair search are shared below it."""

    def __init__(self, models: FractureModels) -> None:
        self.models, self.known = models, dict[str, Any]()

    def search(self, config: MatchingConfig) -> Any:
        def made(pieces: Any) -> PairSearch:
            name = digest(pieces.points.numpy())
            if name not in self.known:
                self.known[name] = prepare(pieces, self.models, 0)
            return PairSearch(self.known[name], self.models, 0, config)

        return made


def examples(data: Path, count: int, seed: int, groups: Sequence[str]) -> Iterator[Example]:
    """All objects, from group to group in turn, so that a run that is cut short has some of each."""
    makers = {group: _makers(group, data, count, seed) for group in groups}
    while makers:
        for group in list(makers):
            try:
                yield next(makers[group])
            except StopIteration:
                del makers[group]


def _makers(group: str, data: Path, count: int, seed: int) -> Iterator[Example]:
    if group == "plain":
        known = find_fractures(data, "train", "everyday", (6, 8))
        classes = sorted({one.category for one in known})
        order = torch.randperm(len(classes), generator=seeded(seed)).tolist()
        for place in order[:count]:
            own = [one for one in known if one.category == classes[place]]
            chosen = own[int(torch.randint(len(own), (), generator=seeded(seed, place)))]
            puzzle = scatter(chosen.meshes(), seeded(seed, place, 1))
            yield Example(group, chosen.name, puzzle, (0,) * len(puzzle))
        return
    rounds = {"damaged": count // 2, "many": 2}.get(group, 3)
    for number in range(rounds):
        generator, draw = seeded(seed, number, len(group)), 40 * number + {"damaged": 7, "many": 3}.get(group, 11)
        pieces = 18 if group == "many" else 4 if group == "sawn" else 6
        solid = replace(break_solids(1, 1, (pieces, pieces), HELD_OUT + draw)[0], pieces=pieces)
        if group == "sawn":
            solid = replace(solid, number=8 * (solid.number // 8) + 7)
        meshes = solid.meshes()
        whose = [0] * len(meshes)
        if group == "foreign" or (group == "damaged" and number % 4 == 3):
            other = replace(break_solids(1, 1, (4, 4), HELD_OUT + draw + 2)[0], pieces=4).meshes()
            sizes = [float(np.ptp(mesh.vertices.numpy(), axis=0).prod()) for mesh in other]
            stranger = other[int(np.argmax(sizes)) if group == "foreign" else 1]
            scale = 2.0 if group == "foreign" else 1.0
            meshes, whose = [*meshes, Mesh(scale * stranger.vertices, stranger.faces)], [*whose, 1]
        if group == "unit":
            meshes[0] = Mesh(25.4 * meshes[0].vertices, meshes[0].faces)
        if group == "copy":
            meshes, whose = [*meshes, meshes[1]], [*whose, 1]
        drawn = torch.randperm(len(meshes), generator=torch.Generator().manual_seed(seed + number))
        if group == "clouds":
            puzzle = Damage(points=9000).of_puzzle(scatter(meshes, seeded(seed, number)), generator)
        else:
            puzzle = scatter(meshes, torch.Generator().manual_seed(seed + number))
        kinds = ("noise 0.1 %", "eroded 0.5 %", "25 % missing", "foreign piece")
        if group == "damaged" and number % 4 < 2:
            damage = Damage(noise=0.001) if number % 4 == 0 else Damage(wear=0.005)
            puzzle = damage.of_puzzle(puzzle, generator)
        owners = [whose[place] for place in drawn.tolist()]
        if group == "damaged" and number % 4 == 2:
            stay = surviving(len(puzzle), 0.25, generator)
            puzzle, owners = puzzle.reordered(stay), [owners[place] for place in stay.tolist()]
        name = f"{solid.name} {kinds[number % 4] if group == 'damaged' else ''}".strip()
        yield Example(group, name, puzzle, tuple(owners))


def solved(example: Example, variant: str, same: SameFragments, shared: Shared) -> Result:
    """Solve with one configuration and score."""
    config, matching = VARIANTS[variant]
    truth = example.puzzle.truth
    assert truth is not None
    began, saved = time.process_time(), shared.saved
    solver = MendSolver(same.models, search=same.search(matching), config=config, matching=matching)
    *_, last = solver.steps(example.puzzle.without_truth(), torch.Generator())
    seconds = time.process_time() - began + shared.saved - saved
    placed = last.placements
    assert placed.objects is not None
    pieces, areas = example.puzzle.fragments, example.puzzle.fragments.areas
    own = torch.tensor([whose == 0 for whose in example.whose])
    largest = int(areas.where(own, 0).argmax())
    guess = placed.poses if placed.guess is None else placed.guess
    moved = scoring.anchored(guess, truth, largest)
    right = scoring.right_pieces(scoring.piece_chamfer(pieces.points, moved, truth))
    euler = euler_error(moved, truth)
    sure = (placed.confidence >= SURE) & (placed.objects >= 0)
    # What is sure must be right as seen from the largest piece that is sure and of the object.
    held = sure & own
    sure_right = torch.zeros(len(pieces), dtype=torch.bool)
    if bool(held.any()):
        seen = scoring.anchored(placed.poses, truth, int(areas.where(held, 0).argmax()))
        sure_right = scoring.right_pieces(scoring.piece_chamfer(pieces.points, seen, truth)) & own
    return Result(
        *(variant, example.group, example.name, 100 * float(right[own].double().mean()), float(euler[own].mean())),
        *(int(sure.sum()), int((sure & sure_right).sum()), seconds),
    )


def fragments_rows(data: Path, count: int, seed: int, groups: Sequence[str], out: Path) -> list[Result]:
    """All objects with all configurations; written to a file object by object."""
    shared, models = Shared(), FractureModels.from_pretrained("fracture-matching")
    share_searches(shared)
    results: list[Result] = []
    for example in examples(data, count, seed, groups):
        shared.kept.clear()
        same = SameFragments(models)
        for variant in example.variants:
            results.append(solved(example, variant, same, shared))
        out.write_text(json.dumps([asdict(result) for result in results], indent=1))
        one = results[-len(example.variants)]
        print(f"{example.group} {example.name}: {one.part_accuracy:.0f} %, {one.seconds:.1f} s", flush=True)
    return results


def interval(differences: Sequence[float]) -> str:
    """The mean and half the width of its 95 % interval."""
    if len(differences) < 2:
        return f"{sum(differences):+.1f}"
    half = 1.96 * float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return f"{float(np.mean(differences)):+.1f} ± {half:.1f}"


def table(results: Sequence[Result], groups: Sequence[str]) -> Iterator[str]:
    """A line of Markdown for each configuration: without less with the heuristic."""
    yield "| without | objects | PA % | RMSE(R) ° | sure | wrong of them | seconds |"
    yield "|---|---|---|---|---|---|---|"
    full = {(one.group, one.name): one for one in results if one.variant == "full" and one.group in groups}
    for variant in VARIANTS:
        own = [one for one in results if one.variant == variant and one.group in groups]
        if not own:
            continue
        pairs = [(one, full[one.group, one.name]) for one in own]
        sure, wrong = sum(one.sure for one in own), sum(one.sure - one.sure_right for one in own)
        seconds = float(np.mean([one.seconds for one in own]))
        if variant == "full":
            accuracy = float(np.mean([one.part_accuracy for one in own]))
            turn = float(np.mean([one.rmse_r for one in own]))
            yield f"| (full) | {len(own)} | {accuracy:.1f} | {turn:.1f} | {sure} | {wrong} | {seconds:.1f} |"
            continue
        changes = [
            interval([one.part_accuracy - other.part_accuracy for one, other in pairs]),
            interval([one.rmse_r - other.rmse_r for one, other in pairs]),
        ]
        more = sum(one.sure - other.sure for one, other in pairs)
        worse = wrong - sum(other.sure - other.sure_right for _, other in pairs)
        slower = seconds - float(np.mean([other.seconds for _, other in pairs]))
        yield f"| {variant} | {len(own)} | {changes[0]} | {changes[1]} | {more:+d} | {worse:+d} | {slower:+.1f} |"


def main() -> None:
    """Solve, and print a table for each group of objects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", default="plain,damaged,many,foreign,clouds,unit,copy,sawn")
    parser.add_argument("--out", type=Path, default=Path("heuristics.json"))
    parser.add_argument("--print", action="store_true", help="print the tables of a file that is there")
    given = parser.parse_args()
    groups = given.groups.split(",")
    if given.print:
        results = [Result(**row) for row in json.loads(given.out.read_text())]
    else:
        results = fragments_rows(given.data, given.objects, given.seed, groups, given.out)
    for chosen in (["plain"], ["damaged"], ["many"], *([group] for group in SPECIAL)):
        print(f"\n{chosen[0]}")
        print("\n".join(table(results, chosen)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
