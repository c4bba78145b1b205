"""Who may make which call: the one table."""

from __future__ import annotations

from collections.abc import Mapping

from foldlog.core.errors import PermissionDeniedError
from foldlog.core.role import Role
from foldlog.server.callers import Caller

NEEDED: Mapping[str, Role] = {
    "CreateSession": Role.WRITER,
    "GetSession": Role.READER,
    "ListSessions": Role.READER,
    "UpdateSession": Role.WRITER,
    "DeleteSession": Role.ADMIN,
    "EraseSession": Role.ADMIN,
    "OpenWriter": Role.WRITER,
    "CloseWriter": Role.WRITER,
    "AppendEvents": Role.WRITER,
    "AppendStream": Role.WRITER,
    "RestoreEvents": Role.WRITER,
    "SeedSession": Role.WRITER,
    "SnapshotSession": Role.ADMIN,
    "RewindSession": Role.WRITER,
    "ForkSession": Role.WRITER,
    "GetLineage": Role.READER,
    "DiffSessions": Role.READER,
    "ListEvents": Role.READER,
    "WatchEvents": Role.READER,
    "WatchAllEvents": Role.READER,
    "GetMessages": Role.READER,
    "GetRequestHeader": Role.READER,
    "CheckRequest": Role.READER,
    "VerifySession": Role.READER,
    "ExportSession": Role.READER,
    "ImportSession": Role.WRITER,
    "RecordHeader": Role.WRITER,
    "BeginStep": Role.WRITER,
    "RecordRequest": Role.WRITER,
    "BuildRequest": Role.READER,
    "VerifyRequests": Role.READER,
    "ExplainRequest": Role.READER,
    "PlanRecovery": Role.READER,
    "RecoverSession": Role.WRITER,
    "ListUnresolvedCalls": Role.READER,
    "SuggestRange": Role.READER,
    "ListHeads": Role.READER,
    "GetSigningKey": Role.READER,
    "PutAttachment": Role.WRITER,
    "GetAttachment": Role.READER,
    "HeadAttachments": Role.READER,
    "CollectAttachments": Role.ADMIN,
}
# What these do reaches sessions that a caller with labels does not see.
OF_WHOLE_TENANT = frozenset({"CollectAttachments", "EraseSession"})


def is_audited(rpc: str) -> bool:
    """Tell whether the audit log has a call: what admins do, and what is not known here."""
    return NEEDED.get(rpc, Role.ADMIN) is Role.ADMIN


def require_permitted(caller: Caller, rpc: str) -> None:
    """Raise PermissionDeniedError unless a caller may make a call at all.

    What stands in no row is for admins.
    """
    needed = NEEDED.get(rpc, Role.ADMIN)
    if caller.role < needed:
        raise PermissionDeniedError(action=rpc, needs=f"the role {needed.label}")
    if rpc in OF_WHOLE_TENANT and not caller.scope.is_whole:
        raise PermissionDeniedError(action=rpc, needs="a key without labels")
