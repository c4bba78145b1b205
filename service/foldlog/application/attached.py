"""The attachments of an export: lines among those of the events that name them. Blocking."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping
from typing import Any

from foldlog.application.attachments import Attachments, as_ours, digests_of
from foldlog.application.exporting import attachment_line
from foldlog.core.errors import InvalidFieldError
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.object_upload import Upload

# An attachment that is named again after so many others may stand in the file twice.
REMEMBERED = 100_000


class AttachmentsOut:
    """Writes each attachment once, before the first event that names it."""

    def __init__(self, objects: Attachments) -> None:
        self._objects = objects
        self._written: dict[bytes, None] = {}

    def lines(self, envelope: Envelope) -> Iterator[bytes]:
        """Yield the lines that are to stand before an event's."""
        if envelope.dropped:
            return
        for digest in digests_of(envelope):
            if digest not in self._written:
                yield from self._lines(digest)
                self._written[digest] = None
                if len(self._written) > REMEMBERED:
                    del self._written[next(iter(self._written))]

    def _lines(self, digest: bytes) -> Iterator[bytes]:
        pieces = self._objects.pieces(digest)
        offset = 0
        try:
            while (piece := pieces.following()) is not None:
                yield attachment_line(digest, pieces.size_bytes, offset, piece)
                offset += len(piece)
        finally:
            pieces.close()


class AttachmentsIn:
    """Puts the attachments of a file as their lines come. They stay if the import is refused."""

    def __init__(self, objects: Attachments) -> None:
        self._objects = objects
        self._upload: Upload | None = None
        self._about: tuple[str, int] = ("", 0)

    def take(self, given: Any, number: int) -> None:
        """Take in a line's piece. Raises InvalidFieldError naming the line."""
        path = f"line {number}.attachment"
        if not isinstance(given, Mapping):
            raise InvalidFieldError.of(path, "an object is required")
        about = (_digits(given, path), _integer(given, "size_bytes", path))
        upload = self._upload or self._begun(about, path)
        if about != self._about or _integer(given, "offset", path) != upload.size_bytes:
            raise InvalidFieldError.of(path, "it does not follow the piece before it")
        data = _data(given, path)
        if upload.size_bytes + len(data) > about[1]:
            raise InvalidFieldError.of(f"{path}.size_bytes", "there are more bytes than it says")
        with as_ours():
            upload.write(data)
        if upload.size_bytes == about[1]:
            self._finish(upload, path)

    def _begun(self, about: tuple[str, int], path: str) -> Upload:
        self._objects.judge_size(about[1], f"{path}.size_bytes")
        self._upload, self._about = self._objects.upload(), about
        return self._upload

    def _finish(self, upload: Upload, path: str) -> None:
        if upload.sha256.hex() != self._about[0]:
            wrong = f"its bytes have {upload.sha256.hex()}"
            raise InvalidFieldError.of(f"{path}.sha256", wrong)
        with as_ours():
            upload.finish()
        self.close()

    def require_whole(self, number: int) -> None:
        """Raise InvalidFieldError if an attachment's bytes are not all there."""
        if self._upload is not None:
            raise InvalidFieldError.of(f"line {number}", "the attachment before it is cut short")

    def close(self) -> None:
        """Forget the attachment that is not whole."""
        if self._upload is not None:
            self._upload.close()
            self._upload = None


def _digits(given: Mapping[str, Any], path: str) -> str:
    digits = given.get("sha256")
    if not isinstance(digits, str) or len(digits) != 64:
        raise InvalidFieldError.of(f"{path}.sha256", "64 hexadecimal digits are required")
    return digits


def _integer(given: Mapping[str, Any], name: str, path: str) -> int:
    value = given.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidFieldError.of(f"{path}.{name}", "an integer of at least 0 is required")
    return value


def _data(given: Mapping[str, Any], path: str) -> bytes:
    try:
        return b64decode(given.get("data", ""), validate=True)
    except (Base64Error, TypeError, ValueError):
        raise InvalidFieldError.of(f"{path}.data", "it is not base64") from None
