"""Images in one provider's words, read in order to say them in another's."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from foldlog.converters.json_text import JsonObject
from foldlog.core.message import OpaquePart

_DATA_URL = re.compile(r"data:(?P<media_type>[^;,]+);base64,(?P<data>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Image:
    """An image by its URL, which may be a data URL."""

    url: str

    @property
    def source(self) -> JsonObject:
        """The image as Anthropic's source: base64 data, or a URL."""
        found = _DATA_URL.fullmatch(self.url)
        return (
            {"type": "base64", **found.groupdict()} if found else {"type": "url", "url": self.url}
        )


def image_of(part: OpaquePart) -> Image | None:
    """Return the image that a part of any of the providers is, or None if it is no such image."""
    try:
        block = json.loads(part.json)
        match part.kind, block:
            case "openai.image_url", {"image_url": {"url": str(url)}}:
                return Image(url)
            case "openai_responses.input_image", {"image_url": str(url)}:
                return Image(url)
            case "anthropic.image", {"source": {"type": "url", "url": str(url)}}:
                return Image(url)
            case "anthropic.image", {"source": {"media_type": str(kind), "data": str(data)}}:
                return Image(f"data:{kind};base64,{data}")
    except (ValueError, RecursionError):
        return None
    return None
