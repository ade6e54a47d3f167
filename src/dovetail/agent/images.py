"""Images that go to the model with the prompt."""

from __future__ import annotations

from pathlib import Path

from dovetail.agent.types import Image
from dovetail.errors import InputError

MAX_BYTES = 5 << 20  # what every service takes
_MARKS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type(head: bytes) -> str:
    """What kind of image the first bytes of a file begin, "" for none that models take."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in _MARKS if head.startswith(mark)), "")


def read_image(path: Path) -> Image:
    """The image in a file; InputError where it is none."""
    fix = f"give a PNG, JPEG, GIF or WebP file of at most {MAX_BYTES} bytes"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "images", fix) from None
    kind = media_type(data)
    if not kind or len(data) > MAX_BYTES:
        raise InputError(f"{path} is {'too large' if kind else 'no image'}", "images", fix)
    return Image(kind, data)
