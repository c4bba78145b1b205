"""The tool-effect ledger: listing the calls of which nothing more is known."""

from __future__ import annotations

from dataclasses import replace

from foldlog.application.feed import Feed
from foldlog.application.identity import aggregate_id
from foldlog.application.readers import Readers
from foldlog.application.scope import Scope
from foldlog.core.errors import InvalidFieldError
from foldlog.core.validation import validate_session_id
from foldlog.persistence.index import SessionIndex
from foldlog.persistence.ledger import (
    CallQuery,
    CallTokenError,
    UnresolvedCall,
    token_after,
)
from foldlog.settings import Limits

CALLS_AT_ONCE = 50


class CallLedger:
    """Lists unresolved calls."""

    def __init__(
        self,
        index: SessionIndex,
        feed: Feed,
        readers: Readers,
        limits: Limits,
        tenant: str,
        scope: Scope,
    ) -> None:
        self._index = index
        self._feed = feed
        self._readers = readers
        self._limits = limits
        self._tenant = tenant
        self._labels = scope.labels

    async def unresolved(
        self, page_size: int, page_token: str, session_id: str
    ) -> tuple[list[UnresolvedCall], str]:
        """Return a page, the oldest first, bounded by bytes too, and the token of the next.

        The index has passed this process's own writes. An empty session id means all sessions.
        """
        only = None
        if session_id:
            validate_session_id(session_id, self._limits.session_id_bytes)
            only = aggregate_id(self._tenant, session_id)
        await self._feed.indexed()
        query = CallQuery(page_size, page_token, only, self._tenant, self._labels)
        try:
            return await self._readers.run(self._page, query)
        except CallTokenError as error:
            raise InvalidFieldError.of("page_token", str(error)) from None

    def _page(self, query: CallQuery) -> tuple[list[UnresolvedCall], str]:
        found: list[UnresolvedCall] = []
        size, token = 0, query.page_token
        while True:
            wanted = min(query.page_size - len(found), CALLS_AT_ONCE)
            step = replace(query, page_size=wanted, page_token=token)
            rows = self._index.list_unresolved(step)
            for call in rows[:wanted]:
                size += call.size_bytes
                if found and size > self._limits.page_bytes:
                    return found, token
                found.append(call)
                token = token_after(step, call)
            if len(rows) <= wanted:
                return found, ""
            if len(found) == query.page_size:
                return found, token
