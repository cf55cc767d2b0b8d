"""Everything a training run depends on, as one value that is also its command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from diffassemble.core import InputError
from diffassemble.fragments.model import FractureConfig
from diffassemble.fragments.orientation import OrientationConfig
from diffassemble.network.baselines import OneShotConfig
from diffassemble.network.config import ModelConfig
from diffassemble.squares.critic import CriticConfig
from diffassemble.squares.edge_model import EdgeModelConfig
from diffassemble.squares.upright import UprightConfig

# ----------------------------------------------------------------------------------------------------------------------
# What a training run learns from: pictures, and the puzzles that are made of them.


@dataclass(frozen=True)
class PictureConfig:
    """Which pictures."""

    folders: tuple[Path, ...] = ()
    """folders of training pictures"""
    shares: tuple[float, ...] = ()
    """how often each folder is drawn from; empty: equally often"""
    held_apart: int = 32
    """pictures of each folder that choose the checkpoint and are never trained on; at most a quarter of all"""


@dataclass(frozen=True)
class DataConfig(PictureConfig):
    """Which pictures, and what puzzles become of them."""

    grids: tuple[int, int] = (3, 12)
    """fewest and most rows and columns"""
    favourite: int = 6
    """this square grid makes up `favourite_share` of the batches"""
    favourite_share: float = 0.4
    missing: float = 0.4
    """largest share of missing pieces"""
    whole_share: float = 0.4
    """share of batches without missing pieces"""
    erode: int = 2
    """largest erosion in pixels"""
    erode_share: float = 0.2
    """share of batches with eroded pieces"""
    smallest_crop: float = 0.75
    """smallest side of a random crop, as a share of the picture's"""
    jitter: float = 0.25
    """strength of random brightness, contrast and colour"""


@dataclass(frozen=True)
class FragmentConfig:
    """Which broken objects, which whole ones to break, and what puzzles become of them."""

    folders: tuple[Path, ...] = ()
    """folders of Breaking Bad, of which the training split is used"""
    meshes: tuple[Path, ...] = ()
    """folders of whole solids that are broken here"""
    z_up: str = ""
    """a pattern of file names, such as scan_*: solids in such files stand along z, all others along y"""
    solids: int = 0
    """solids made of nothing but chance, to be broken here"""
    breaks: int = 3
    """fractures made of each solid"""
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    """how often a fracture is drawn from each of these three kinds, where there are any"""
    held_apart: int = 12
    """objects of each Breaking Bad folder that choose the checkpoint and are never trained on"""
    pieces: tuple[int, int] = (2, 20)
    """fewest and most pieces of a fracture"""
    points: int = 400
    """points a piece"""
    missing: float = 0.3
    """largest share of missing pieces"""
    whole_share: float = 0.7
    """share of batches without missing pieces"""
    joined: float = 0.0
    """share of fractures of which fragments that lie together are joined at random, as `mend` joins them"""
    stretch: float = 0.15
    """how far objects are stretched along each axis at random"""


@dataclass(frozen=True)
class FractureDataConfig(FragmentConfig):
    """Which broken objects fracture matching is learnt from, and what of it."""

    learn: Literal["surface", "fits"] = "surface"
    """surface: where the break is, and who fits whom; fits, after that: which fits are true"""
    noise: float = 0.0015
    """largest noise that half of the objects gets, as a share of their size"""
    times: int = 1
    """how often examples are made of each fracture, each time of other points, with other noise and missing pieces"""


# ----------------------------------------------------------------------------------------------------------------------
# Everything a training run depends on, as one value that is also its command line.


@dataclass(frozen=True)
class TrainingConfig:
    """How long and how hard, whatever is learnt."""

    start_from: str = ""
    """a bundled model, a folder or a hub id whose weights to begin with; empty: at random"""
    steps: int = 20000
    """batches to learn from, in all calls together"""
    minutes: float = 600.0
    """stop after this long, in one call, even if `steps` are not done; go on with --resume"""
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    learning_rate: float = 6e-4
    weight_decay: float = 0.01
    warmup: int = 300
    """first steps, in which the learning rate rises"""
    decay: float = 0.35
    """last share of the steps, in which the learning rate falls to zero"""
    clip: float = 1.0
    """longest gradient"""
    average: float = 0.999
    """decay of the moving average of the weights, which is what is kept"""
    validate_every: int = 1000
    """steps between two looks at the pictures held apart"""
    checkpoint_minutes: float = 4.0
    """most work that a kill may cost"""
    seed: int = 0
    devices: int = 1
    """processes that share out each batch, on every machine"""
    nodes: int = 1
    """machines that share out each batch; torchrun starts the processes there"""
    accelerator: Literal["cpu", "cuda", "mps", "auto"] = "cpu"
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """auto: bfloat16 where the processor computes in it, and faster than in float32"""


@dataclass(frozen=True)
class DenoisingTraining(TrainingConfig):
    """How the denoiser learns."""

    pieces: int = 288
    """pieces in a batch, over all processes; the number of puzzles follows from the grid"""
    noises: int = 2
    """noisy versions of each puzzle in a step; they share the encoder's work"""
    translation_weight: float = 2.0
    rotation_weight: float = 0.5
    weigh_noise: bool = True
    """count errors the more the less noise there is; off in the paper"""


@dataclass(frozen=True)
class FragmentTraining(DenoisingTraining):
    """How a network learns to put fragments together."""

    chamfer_weight: float = 10.0
    """weight of the distance between a piece's shape where it is put and where it belongs; 0 leaves it out"""


@dataclass(frozen=True)
class UprightTraining(TrainingConfig):
    """How the upright classifier learns."""

    pictures: int = 16
    """pictures in a batch, over all processes; each is looked at in its four turns"""


@dataclass(frozen=True)
class CriticTraining(TrainingConfig):
    """How the critic of placements learns."""

    pictures: int = 6
    """pictures in a batch, over all processes"""
    false: int = 7
    """false placements that each true one is told from"""


@dataclass(frozen=True)
class OrientationTraining(TrainingConfig):
    """How the network that stands objects up learns."""

    objects: int = 16
    """objects in a batch, over all processes; each is looked at from about thirty directions"""
    front_weight: float = 0.3
    """weight of which way objects face, beside which direction is up"""
    smoothing: float = 0.02
    """share of doubt in what is taught"""


@dataclass(frozen=True)
class EdgeModelTraining(TrainingConfig):
    """How edge compatibility is learned."""

    pieces: int = 160
    """pieces in a batch, over all processes; each of their sides has all others to choose from"""
    worn_share: float = 0.5
    """share of puzzles whose pieces are blurred, unevenly lit or compressed as JPEG"""


@dataclass(frozen=True)
class Config:
    """One complete run; what the three parts are made of depends on what is learnt."""

    model: Any
    data: Any
    training: TrainingConfig


@dataclass(frozen=True)
class JigsawRun(Config):
    """A run that teaches a denoiser jigsaw puzzles."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: DenoisingTraining = field(default_factory=DenoisingTraining)


_FRAGMENT_MODEL = ModelConfig(
    backbone="vn_dgcnn", features=48, edge_features=False, votes=False, space="so3", posed=True
)


@dataclass(frozen=True)
class FragmentRun(Config):
    """A run that teaches a denoiser broken objects."""

    model: ModelConfig = _FRAGMENT_MODEL
    data: FragmentConfig = field(default_factory=FragmentConfig)
    training: FragmentTraining = field(default_factory=FragmentTraining)


@dataclass(frozen=True)
class BaselineRun(Config):
    """A run that teaches a network broken objects in one go."""

    model: OneShotConfig = field(default_factory=OneShotConfig)
    data: FragmentConfig = field(default_factory=FragmentConfig)
    training: FragmentTraining = field(default_factory=FragmentTraining)


@dataclass(frozen=True)
class UprightRun(Config):
    """A run that teaches a classifier which way is up."""

    model: UprightConfig = field(default_factory=UprightConfig)
    data: PictureConfig = field(default_factory=PictureConfig)
    training: UprightTraining = field(default_factory=UprightTraining)


@dataclass(frozen=True)
class CriticRun(Config):
    """A run that teaches a critic how true placements look."""

    model: CriticConfig = field(default_factory=CriticConfig)
    data: PictureConfig = field(default_factory=PictureConfig)
    training: CriticTraining = field(default_factory=CriticTraining)


@dataclass(frozen=True)
class OrientationRun(Config):
    """A run that teaches a network how objects stand."""

    model: OrientationConfig = field(default_factory=OrientationConfig)
    data: FragmentConfig = field(default_factory=FragmentConfig)
    training: OrientationTraining = field(default_factory=OrientationTraining)


@dataclass(frozen=True)
class EdgeModelRun(Config):
    """A run that learns which sides continue each other."""

    model: EdgeModelConfig = field(default_factory=EdgeModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: EdgeModelTraining = field(default_factory=EdgeModelTraining)


@dataclass(frozen=True)
class FractureMatchingTraining(TrainingConfig):
    """How the networks of fracture matching learn."""

    points: int = 960
    """points of each level, or fits, in a batch, over all processes"""


@dataclass(frozen=True)
class FractureMatchingRun(Config):
    """A run that teaches the networks of fracture matching."""

    model: FractureConfig = field(default_factory=FractureConfig)
    data: FractureDataConfig = field(default_factory=FractureDataConfig)
    training: FractureMatchingTraining = field(default_factory=FractureMatchingTraining)


Kind = TypeVar("Kind", bound=Config)


def read_config(path: Path, kind: type[Kind]) -> Kind:
    """The configuration that a run of this kind wrote into its folder."""
    try:
        parts = json.loads(path.read_text())
        for key in ("folders", "meshes"):
            if key in parts["data"]:
                parts["data"][key] = [Path(folder) for folder in parts["data"][key]]
        return kind(**{name: part(**_with_tuples(parts[name])) for name, part in get_type_hints(kind).items()})
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: is not the configuration of a run of this preset and version ({error})") from error


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows lists only."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
