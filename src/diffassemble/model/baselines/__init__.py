"""The methods that the paper compares with: features of all pieces in, poses out, in one go.

Each maps padded features (b, w, f) of b objects, of which `present` (b, w) are real, to poses (b, w, 12): translation,
then the rotation matrix row by row.
"""

from torch import nn

from diffassemble.model.baselines.global_ import Global
from diffassemble.model.baselines.graph import DynamicGraph
from diffassemble.model.baselines.matching import ShapeMating
from diffassemble.model.baselines.sequence import Sequence
from diffassemble.model.baselines.symmetric import Symmetric

BASELINES: dict[str, type[nn.Module]] = {
    "global": Global,
    "lstm": Sequence,
    "dgl": DynamicGraph,
    "nsm": ShapeMating,
    "se3-equiv": Symmetric,
}
