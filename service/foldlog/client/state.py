"""What clients and sessions know, whoever drives them: no I/O."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar
from uuid import uuid4

from foldlog.client.credentials import Metadata, metadata_of
from foldlog.client.fitting import valid_session_id
from foldlog.client.retries import Attempts, RetryPolicy
from foldlog.client.tls import Tls

if TYPE_CHECKING:
    from foldlog.client.recovery import Recovery
    from foldlog.client.values import CutState
    from foldlog.core.message import Message

DEFAULT_ADDRESS: Final = "127.0.0.1:50551"
DEFAULT_TIMEOUT_S: Final = 30.0
MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SendLimits:
    """What is sent at once: the service's default limits. Longer appends are split."""

    batch_events: int = 1_000
    batch_bytes: int = 7 * MIB // 2
    request_bytes: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class CheckedPrefix:
    """Messages that were equal to the log's, less a leading system message, and their digest."""

    messages: list[Message]
    digest: bytes


S = TypeVar("S", bound="SessionState")


class ClientState(Generic[S]):
    """A client's settings and counters, and the kinds of its sessions and of its wire."""

    session_kind: type[S]
    wire_kind: Callable[[str, Tls | None, Metadata], Any]

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retry: RetryPolicy | None = RetryPolicy(),  # noqa: B008
        limits: SendLimits = SendLimits(),
        tls: Tls | None = None,
        api_key: str | None = None,
    ) -> None:
        self.address = address or os.environ.get("FOLDLOG_ADDRESS") or DEFAULT_ADDRESS
        self.timeout_s = timeout_s
        self.retry = retry
        self.limits = limits
        self.failed_appends = 0
        key = api_key if api_key is not None else os.environ.get("FOLDLOG_API_KEY", "")
        self.wire = self.wire_kind(self.address, tls or Tls.from_environment(), metadata_of(key))

    def session(self, session_id: str) -> S:
        """Return the object for a session. Makes no call: whether it exists shows at the first."""
        return self.session_kind(self, session_id)

    def attempts(self, timeout_s: float | None) -> Attempts:
        """Return the attempts of a call; None means the client's timeout."""
        return Attempts(self.retry, self.timeout_s if timeout_s is None else timeout_s)


def new_request_id(given: str | None) -> str:
    """Return the id that is given, or a new one. Made once per call and kept over its attempts."""
    return given or uuid4().hex


class SessionState:
    """What a session object knows of its session. It makes no call by itself.

    `next_seq` is the largest that an answer to this object said, None before the first.
    `writer_epoch` is sent with each write while it is set. `cut` is what was open where the session
    was forked off, if this object comes from a fork; `recovery` what taking it over answered, if
    this object did. `failed_appends` counts those of `try_append`.
    """

    def __init__(self, client: ClientState[Any], session_id: str) -> None:
        self.client = client
        self.session_id = valid_session_id(session_id)
        self.next_seq: int | None = None
        self.writer_epoch: int | None = None
        self.cut: CutState | None = None
        self.recovery: Recovery | None = None
        self.failed_appends = 0
        self.checked: CheckedPrefix | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r})"

    def sibling(self, session_id: str, next_seq: int) -> Self:
        """Return an object of the same client for another session."""
        other = type(self)(self.client, session_id)
        other.next_seq = next_seq
        return other

    def saw(self, next_seq: int) -> None:
        """Note a next_seq that an answer said."""
        self.next_seq = max(next_seq, self.next_seq or 0)
