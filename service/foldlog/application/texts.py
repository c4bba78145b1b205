"""Large texts of request headers: kept once, however many headers of whatever sessions have them.

A stored header then lacks them and has their digests. Whoever reads a header gets it whole, byte
for byte as it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from foldlog.application.incoming import Incoming
from foldlog.application.kept import SharedKept
from foldlog.core.errors import EncryptionKeyMissingError
from foldlog.core.event import EventType
from foldlog.internal.v1.storage_pb2 import HeaderTexts, ToolTexts
from foldlog.persistence.errors import MasterKeyMissingError, ObjectDamagedError
from foldlog.persistence.objects import ObjectStore
from foldlog.v1.event_pb2 import EventBody, RequestHeader

LARGE_BYTES = 1024
CACHE_BYTES = 16 * 1024 * 1024


class TextLostError(Exception):
    """A text of a header is not stored, or not as it was."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The body of a header without its large texts, what it refers to, and the texts."""

    body: bytes
    texts: HeaderTexts
    contents: tuple[bytes, ...]


def cut(body: bytes) -> Cut | None:
    """Return a header's body without its large texts.

    None if it has none, or if it could not be put together again byte for byte.
    """
    if len(body) < LARGE_BYTES:
        return None
    parsed = EventBody.FromString(body)
    header, texts = parsed.request_header, HeaderTexts()
    contents = []
    prompt = header.system_prompt.encode()
    if len(prompt) >= LARGE_BYTES:
        texts.system_prompt_sha256 = sha256(prompt).digest()
        contents.append(prompt)
        header.ClearField("system_prompt")
    tools = ToolTexts(tools_json=header.tools_json).SerializeToString(deterministic=True)
    if len(tools) >= LARGE_BYTES:
        texts.tools_sha256 = sha256(tools).digest()
        contents.append(tools)
        header.ClearField("tools_json")
    rest = parsed.SerializeToString(deterministic=True)
    known = {sha256(content).digest(): content for content in contents}
    if not contents or whole(rest, texts, known.__getitem__) != body:
        return None
    return Cut(rest, texts, tuple(contents))


def whole(body: bytes, texts: HeaderTexts, content: Callable[[bytes], bytes]) -> bytes:
    """Return the body of a header with the texts it refers to."""
    parsed = EventBody.FromString(body)
    filled(parsed.request_header, texts, content)
    return parsed.SerializeToString(deterministic=True)


def filled(header: RequestHeader, texts: HeaderTexts, content: Callable[[bytes], bytes]) -> None:
    """Give a header the texts it refers to."""
    if texts.system_prompt_sha256:
        header.system_prompt = content(texts.system_prompt_sha256).decode()
    if texts.tools_sha256:
        header.tools_json.extend(ToolTexts.FromString(content(texts.tools_sha256)).tools_json)


def cut_headers(batch: Sequence[Incoming]) -> tuple[list[Incoming], list[bytes]]:
    """Return a batch whose headers lack their large texts, and those, to be stored before it."""
    made: list[Incoming] = []
    contents: list[bytes] = []
    for event in batch:
        found = cut(event.body) if event.type is EventType.REQUEST_HEADER else None
        if found is not None:
            event = event._replace(body=found.body, header_texts=found.texts)
            contents += found.contents
        made.append(event)
    return made, contents


KeptTexts = SharedKept[tuple[str, bytes], bytes]


def kept_texts() -> KeptTexts:
    """Return room for texts by tenant and digest."""
    return SharedKept(CACHE_BYTES, len)


class Texts:
    """Reads texts of a tenant; the newest are kept. Blocking; any thread may call it."""

    def __init__(self, objects: ObjectStore, tenant: str, kept: KeptTexts) -> None:
        self._objects = objects
        self._tenant = tenant
        self._kept = kept

    def get(self, digest: bytes) -> bytes:
        """Return a text. Raises TextLostError."""
        held = self._kept.get((self._tenant, digest))
        if held is None:
            held = self.read(digest)
            self._kept.keep((self._tenant, digest), held)
        return held

    def read(self, digest: bytes) -> bytes:
        """Return a text as it is stored, whatever is kept.

        Raises TextLostError, and EncryptionKeyMissingError.
        """
        try:
            opened = self._objects.open(self._tenant, digest)
            if opened is None:
                raise TextLostError
            with opened:
                return b"".join(opened.pieces(0, opened.stored.size_bytes))
        except ObjectDamagedError as error:
            raise TextLostError from error
        except MasterKeyMissingError as error:
            raise EncryptionKeyMissingError(
                session_id="", seq=-1, damage=str(error), key_id=error.key_id
            ) from error

    def forget(self, digests: Sequence[bytes]) -> None:
        """Forget texts that were erased."""
        for digest in digests:
            self._kept.forget((self._tenant, digest))

    def put(self, content: bytes) -> None:
        """Store a text, if it is not stored yet."""
        self._objects.put_bytes(self._tenant, content)
