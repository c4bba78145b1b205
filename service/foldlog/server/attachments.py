"""The RPCs of attachments."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from foldlog.application.incoming import require_size
from foldlog.application.tenant import Tenant
from foldlog.core.errors import InvalidFieldError
from foldlog.core.validation import validate_media_type, validate_sha256
from foldlog.server.handlers import Rpc
from foldlog.v1 import service_pb2 as pb

MAX_PIECE_BYTES = 1024 * 1024
MAX_DIGESTS = 1_000


class AttachmentServicer:
    """Attachments over an application."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    def rpcs(self) -> Mapping[str, Rpc]:
        """Return the RPCs by name."""
        return {
            "PutAttachment": Rpc(self.put, pb.PutAttachmentRequest, takes_stream=True),
            "GetAttachment": Rpc(self.get, pb.GetAttachmentRequest, gives_stream=True),
            "HeadAttachments": Rpc(self.head, pb.HeadAttachmentsRequest),
            "CollectAttachments": Rpc(self.collect, pb.CollectAttachmentsRequest),
        }

    async def put(
        self, elements: AsyncIterator[pb.PutAttachmentRequest]
    ) -> pb.PutAttachmentResponse:
        """Store bytes."""
        first = await anext(elements, pb.PutAttachmentRequest())
        if first.WhichOneof("kind") != "header":
            raise InvalidFieldError.of("header", "the first element is to be the header")
        header = first.header
        if header.sha256:
            validate_sha256(header.sha256, "header.sha256")
        if header.media_type:
            validate_media_type(header.media_type, "header.media_type")
        size = header.size_bytes if header.HasField("size_bytes") else None
        digest, size, existed = await self._tenant.objects.put(_data(elements), header.sha256, size)
        return pb.PutAttachmentResponse(sha256=digest, size_bytes=size, existed=existed)

    async def get(
        self, request: pb.GetAttachmentRequest
    ) -> AsyncIterator[pb.GetAttachmentResponse]:
        """Read bytes."""
        validate_sha256(request.sha256, "sha256")
        is_first = True
        pieces = self._tenant.objects.get(request.sha256, request.offset, request.length)
        async for size, piece in pieces:
            yield pb.GetAttachmentResponse(data=piece, size_bytes=size if is_first else 0)
            is_first = False

    async def head(self, request: pb.HeadAttachmentsRequest) -> pb.HeadAttachmentsResponse:
        """Say which are stored."""
        require_size("sha256", len(request.sha256), MAX_DIGESTS)
        for index, digest in enumerate(request.sha256):
            validate_sha256(digest, f"sha256[{index}]")
        sizes = await self._tenant.objects.sizes(request.sha256)
        stored = [
            pb.StoredAttachment(sha256=digest, size_bytes=sizes[digest])
            for digest in request.sha256
            if digest in sizes
        ]
        return pb.HeadAttachmentsResponse(attachments=stored)

    async def collect(self, request: pb.CollectAttachmentsRequest) -> pb.CollectAttachmentsResponse:
        """Delete what nothing names."""
        if request.grace_s < 0:
            raise InvalidFieldError.of("grace_s", f"{request.grace_s} is below 0")
        found = await self._tenant.collecting.collect(request.dry_run, request.grace_s)
        return pb.CollectAttachmentsResponse(
            collected_count=found.collected_count,
            collected_bytes=found.collected_bytes,
            examined_count=found.examined_count,
        )


async def _data(elements: AsyncIterator[pb.PutAttachmentRequest]) -> AsyncIterator[bytes]:
    async for element in elements:
        if element.WhichOneof("kind") != "data":
            raise InvalidFieldError.of("data", "each later element is to be data")
        require_size("data", len(element.data), MAX_PIECE_BYTES)
        yield element.data
