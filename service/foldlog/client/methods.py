"""The calls of the service, each with the type of its answer.

Where events travel, the raw twins of the public messages are used: the same bytes on the wire, and
the bodies stay as they are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message as ProtoMessage

from foldlog.internal.v1 import raw_pb2
from foldlog.v1 import service_pb2

SERVICE: Final = "foldlog.v1.SessionService"
Answer = TypeVar("Answer", bound=ProtoMessage)


@dataclass(frozen=True, slots=True)
class Method(Generic[Answer]):
    """One call of the service."""

    name: str
    answer: type[Answer]

    @property
    def path(self) -> str:
        """The name on the wire."""
        return f"/{SERVICE}/{self.name}"


CREATE_SESSION: Final = Method("CreateSession", service_pb2.CreateSessionResponse)
GET_SESSION: Final = Method("GetSession", service_pb2.GetSessionResponse)
LIST_SESSIONS: Final = Method("ListSessions", service_pb2.ListSessionsResponse)
UPDATE_SESSION: Final = Method("UpdateSession", service_pb2.UpdateSessionResponse)
DELETE_SESSION: Final = Method("DeleteSession", service_pb2.DeleteSessionResponse)
ERASE_SESSION: Final = Method("EraseSession", service_pb2.EraseSessionResponse)
OPEN_WRITER: Final = Method("OpenWriter", service_pb2.OpenWriterResponse)
CLOSE_WRITER: Final = Method("CloseWriter", service_pb2.CloseWriterResponse)
APPEND_EVENTS: Final = Method("AppendEvents", service_pb2.AppendEventsResponse)
APPEND_STREAM: Final = Method("AppendStream", service_pb2.AppendStreamResponse)
RESTORE_EVENTS: Final = Method("RestoreEvents", service_pb2.RestoreEventsResponse)
SEED_SESSION: Final = Method("SeedSession", service_pb2.SeedSessionResponse)
SNAPSHOT_SESSION: Final = Method("SnapshotSession", service_pb2.SnapshotSessionResponse)
REWIND_SESSION: Final = Method("RewindSession", service_pb2.RewindSessionResponse)
FORK_SESSION: Final = Method("ForkSession", service_pb2.ForkSessionResponse)
GET_LINEAGE: Final = Method("GetLineage", service_pb2.GetLineageResponse)
DIFF_SESSIONS: Final = Method("DiffSessions", service_pb2.DiffSessionsResponse)
LIST_EVENTS: Final = Method("ListEvents", raw_pb2.RawListEventsResponse)
WATCH_EVENTS: Final = Method("WatchEvents", raw_pb2.RawWatchEventsResponse)
WATCH_ALL_EVENTS: Final = Method("WatchAllEvents", raw_pb2.RawWatchAllEventsResponse)
GET_MESSAGES: Final = Method("GetMessages", service_pb2.GetMessagesResponse)
GET_REQUEST_HEADER: Final = Method("GetRequestHeader", service_pb2.GetRequestHeaderResponse)
CHECK_REQUEST: Final = Method("CheckRequest", service_pb2.CheckRequestResponse)
VERIFY_SESSION: Final = Method("VerifySession", service_pb2.VerifySessionResponse)
LIST_HEADS: Final = Method("ListHeads", service_pb2.ListHeadsResponse)
GET_SIGNING_KEY: Final = Method("GetSigningKey", service_pb2.GetSigningKeyResponse)
EXPORT_SESSION: Final = Method("ExportSession", service_pb2.ExportSessionResponse)
IMPORT_SESSION: Final = Method("ImportSession", service_pb2.ImportSessionResponse)
RECORD_HEADER: Final = Method("RecordHeader", service_pb2.RecordHeaderResponse)
BEGIN_STEP: Final = Method("BeginStep", service_pb2.BeginStepResponse)
RECORD_REQUEST: Final = Method("RecordRequest", service_pb2.RecordRequestResponse)
BUILD_REQUEST: Final = Method("BuildRequest", service_pb2.BuildRequestResponse)
VERIFY_REQUESTS: Final = Method("VerifyRequests", service_pb2.VerifyRequestsResponse)
EXPLAIN_REQUEST: Final = Method("ExplainRequest", service_pb2.ExplainRequestResponse)
PLAN_RECOVERY: Final = Method("PlanRecovery", service_pb2.PlanRecoveryResponse)
RECOVER_SESSION: Final = Method("RecoverSession", service_pb2.RecoverSessionResponse)
LIST_UNRESOLVED_CALLS: Final = Method(
    "ListUnresolvedCalls", service_pb2.ListUnresolvedCallsResponse
)
SUGGEST_RANGE: Final = Method("SuggestRange", service_pb2.SuggestRangeResponse)
PUT_ATTACHMENT: Final = Method("PutAttachment", service_pb2.PutAttachmentResponse)
GET_ATTACHMENT: Final = Method("GetAttachment", service_pb2.GetAttachmentResponse)
HEAD_ATTACHMENTS: Final = Method("HeadAttachments", service_pb2.HeadAttachmentsResponse)
COLLECT_ATTACHMENTS: Final = Method("CollectAttachments", service_pb2.CollectAttachmentsResponse)
