"""One piece becomes features that turn with it."""

from diffassemble.encoders.image import ImageEncoder

__all__ = ["ImageEncoder"]
