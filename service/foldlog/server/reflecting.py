"""Reflection tells the API: where callers have to be known, it answers to those who are."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

from grpc_reflection.v1alpha import reflection

from foldlog._grpc import aio
from foldlog.core.errors import FoldlogError
from foldlog.server.callers import Authenticator, metadata_of
from foldlog.server.errors import abort, as_ours


class GuardedReflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]
    """Asks for the caller before it answers.

    No interceptor does it: one would be passed by each call to anything.
    """

    def __init__(self, names: Iterable[str], authenticator: Authenticator) -> None:
        super().__init__(names)
        self._authenticator = authenticator

    async def ServerReflectionInfo(
        self, request_iterator: AsyncIterable[Any], context: aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[Any]:
        """Answer what is asked, or refuse the call."""
        pairs = context.invocation_metadata() or ()
        try:
            await self._authenticator.caller_of(metadata_of((str(k), v) for k, v in pairs))
        except FoldlogError as error:
            await abort(context, as_ours(error))
        async for answer in super().ServerReflectionInfo(request_iterator, context):
            yield answer
