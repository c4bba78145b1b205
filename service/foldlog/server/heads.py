"""The RPCs of heads: listed, and signed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from foldlog.application.heads import Head
from foldlog.application.tenant import Tenant
from foldlog.server.handlers import Rpc
from foldlog.v1 import service_pb2 as pb


class HeadServicer:
    """Heads over an application."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    def rpcs(self) -> Mapping[str, Rpc]:
        """Return the RPCs by name."""
        return {
            "ListHeads": Rpc(self.list_heads, pb.ListHeadsRequest, False, True),
            "GetSigningKey": Rpc(self.get_signing_key, pb.GetSigningKeyRequest),
        }

    async def list_heads(self, request: pb.ListHeadsRequest) -> AsyncIterator[pb.ListHeadsResponse]:
        """Stream heads."""
        pages = self._tenant.heads.read(request.session_id, request.after_cursor, request.sign)
        async for page in pages:
            yield pb.ListHeadsResponse(heads=map(_head, page))

    async def get_signing_key(self, request: pb.GetSigningKeyRequest) -> pb.GetSigningKeyResponse:
        """Give the public key."""
        signer = self._tenant.heads.signer
        return pb.GetSigningKeyResponse(key_id=signer.key_id, public_key=signer.public_key)


def _head(head: Head) -> pb.SessionHead:
    anchor = head.anchor
    return pb.SessionHead(
        tenant=anchor.tenant,
        session_id=anchor.session_id,
        version=anchor.version,
        next_seq=anchor.next_seq,
        chain=anchor.chain,
        time=anchor.time,
        key_id=anchor.key_id,
        signature=anchor.signature,
        cursor=anchor.cursor,
        damage=head.damage,
    )
