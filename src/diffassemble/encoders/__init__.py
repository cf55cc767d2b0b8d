"""One piece becomes features that turn with it."""

from diffassemble.encoders.image import ImageEncoder
from diffassemble.encoders.making import make_encoder

__all__ = ["ImageEncoder", "make_encoder"]
