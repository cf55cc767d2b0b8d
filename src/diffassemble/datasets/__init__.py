"""Collections of pictures to cut puzzles from."""

from diffassemble.datasets.named import held_out_pictures, short_name
from diffassemble.datasets.pictures import PICTURE_ENDINGS, picture_paths
from diffassemble.datasets.published import COLLECTIONS, published_split

__all__ = ["COLLECTIONS", "PICTURE_ENDINGS", "held_out_pictures", "picture_paths", "published_split", "short_name"]
