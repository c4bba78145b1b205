"""API keys as text: `foldlog_<id>_<secret>`, so that who finds one in a file knows what it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256

ID_BYTES = 8
SECRET_BYTES = 32
PREFIX = "foldlog_"
_FORM = re.compile(r"foldlog_([0-9a-f]{16})_([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key: its id, which is no secret, and its secret."""

    key_id: str
    secret: bytes = field(repr=False)

    @classmethod
    def parsed(cls, text: str) -> ApiKey | None:
        """Return the key that a text is, or None."""
        found = _FORM.fullmatch(text)
        return cls(found[1], bytes.fromhex(found[2])) if found else None

    @property
    def text(self) -> str:
        """The key as its holder sends it."""
        return f"{PREFIX}{self.key_id}_{self.secret.hex()}"

    @property
    def digest(self) -> bytes:
        """What is stored. The secret is 32 random bytes, which no list or guess reaches."""
        return sha256(self.secret).digest()
