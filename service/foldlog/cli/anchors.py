"""Anchors read from files: whose signatures hold, and which logs still do what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from foldlog.cli.outcome import CommandError
from foldlog.core.anchor import Anchor, anchor_of
from foldlog.core.errors import SessionNotFoundError, SigningKeyMissingError

if TYPE_CHECKING:
    from foldlog.client.client import Client
    from foldlog.client.values import Verification
    from foldlog.signing import PublicKeys

VERSIONS_AT_ONCE = 10_000


@dataclass(slots=True)
class AnchorFile:
    """The anchors of files by session, those that a known key signed, and what else is there."""

    by_session: dict[str, list[Anchor]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)

    def take(self, where: str, line: str, keys: PublicKeys, tenant: str) -> None:
        """Take a line in, if it is of the tenant or none is named."""
        try:
            anchor = anchor_of(line)
        except ValueError as error:
            self.faults.append(f"{where} is no anchor: {error}")
            return
        if tenant and anchor.tenant != tenant:
            return
        self.tenants.add(anchor.tenant)
        if not keys.knows(anchor.key_id):
            self.faults.append(
                f"{where} is signed by a key that was not given: {anchor.key_id.hex()}"
            )
        elif not keys.signed(anchor):
            self.faults.append(f"{where} is not as it was signed")
        else:
            self.by_session.setdefault(anchor.session_id, []).append(anchor)


def read_anchors(paths: Sequence[str], keys: PublicKeys, tenant: str) -> AnchorFile:
    """Read files of anchors. Raises CommandError for what cannot be read, or several tenants."""
    found = AnchorFile()
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                for number, line in enumerate(file, 1):
                    found.take(f"{path}, line {number},", line, keys, tenant)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    if len(found.tenants) > 1:
        raise CommandError(
            f"these are anchors of {len(found.tenants)} tenants; name one: --tenant."
        )
    return found


def accepted_keys(paths: Sequence[str], client: Client) -> PublicKeys:
    """Return the keys in files, or where there is none the key that the service signs with."""
    try:
        from foldlog.signing import PublicKeys, SigningKeyError
    except ImportError as error:
        raise CommandError(f"{error}.") from None
    try:
        if paths:
            return PublicKeys.read(map(Path, paths))
        return PublicKeys([client.signing_key()])
    except SigningKeyError as error:
        raise CommandError(f"{error}.") from None
    except SigningKeyMissingError:
        raise CommandError(
            "the service has no signing key; name the public one: --public-key."
        ) from None


def compared(
    client: Client, session_id: str, anchors: Sequence[Anchor]
) -> tuple[Verification | None, list[str]]:
    """Audit a session, and say how its log departs from its anchors.

    None for a session that is not there. Raises SessionNotFoundError for one without anchors.
    """
    versions = sorted({anchor.version for anchor in anchors})
    try:
        session = client.session(session_id)
        audits = [
            session.verify(versions[at : at + VERSIONS_AT_ONCE], include_deleted=True)
            for at in range(0, max(1, len(versions)), VERSIONS_AT_ONCE)
        ]
    except SessionNotFoundError:
        if not anchors:
            raise
        return None, [f"it was anchored on {anchors[-1].time}, and it is not there"]
    chains = {version: chain for audit in audits for version, chain in audit.chains.items()}
    return audits[-1], list(_departures(anchors, chains, audits[-1].version))


def _departures(anchors: Iterable[Anchor], chains: dict[int, bytes], newest: int) -> Iterator[str]:
    for anchor in anchors:
        there = f"it was anchored with {anchor.version} rows on {anchor.time}"
        if anchor.version > newest:
            yield f"{there}, and has {newest} now: its end was cut off, or the store rolled back"
        elif anchor.version not in chains:
            yield f"{there}, and cannot be followed up to there"
        elif chains[anchor.version] != anchor.chain:
            yield f"{there}, and those rows are others now: the log was written anew"
