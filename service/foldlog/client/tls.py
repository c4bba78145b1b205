"""How the client makes sure whom it talks to, and proves who it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from foldlog._grpc import grpc

SWITCH = "FOLDLOG_TLS"
VARIABLES = {
    "ca_file": "FOLDLOG_CA_FILE",
    "certificate_file": "FOLDLOG_CLIENT_CERTIFICATE_FILE",
    "key_file": "FOLDLOG_CLIENT_KEY_FILE",
    "server_name": "FOLDLOG_SERVER_NAME",
}
SERVER_NAME_OPTION = "grpc.ssl_target_name_override"


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS to the service. Files are PEM.

    Without `ca_file` the server is to have a certificate of a CA that gRPC knows. What mutual TLS
    asks of a client is `certificate_file`, with its key there or in `key_file`. `server_name` is
    the name in the server's certificate where it is not the address's.
    """

    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    server_name: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self | None:
        """Return what VARIABLES say; None where nothing asks for TLS.

        FOLDLOG_TLS=true alone is for a CA that gRPC knows.
        """
        environment = os.environ if environment is None else environment
        given = {name: environment.get(variable, "") for name, variable in VARIABLES.items()}
        is_on = environment.get(SWITCH, "").lower() in {"1", "true", "yes", "on"}
        return cls(**given) if is_on or any(given.values()) else None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return gRPC's credentials. Raises ValueError for a file that cannot be read."""
        chain = _read(self.certificate_file)
        key = _read(self.key_file) if self.key_file else chain
        return grpc.ssl_channel_credentials(_read(self.ca_file), key, chain)

    def options(self) -> tuple[tuple[str, str], ...]:
        """Return the channel's options."""
        return ((SERVER_NAME_OPTION, self.server_name),) if self.server_name else ()


def _read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
