"""TLS for the server: certificates from files, read again once they change."""

from __future__ import annotations

import ssl
from pathlib import Path

from foldlog import observability
from foldlog._grpc import grpc
from foldlog.settings import Settings, is_loopback, split_address


class CertificateError(ValueError):
    """The files hold no certificate with its key. The message names them and says why."""


class PlaintextError(ValueError):
    """Other machines would reach the service in plaintext, and no setting says that they may."""


def require_tls_beyond_loopback(settings: Settings) -> None:
    """Raise PlaintextError where plaintext would leave this machine, or log that it may."""
    for name in ("listen", "metrics_listen"):
        address = getattr(settings, name)
        is_encrypted = name == "listen" and bool(settings.tls_certificate_file)
        if not address or is_encrypted or is_loopback(split_address(address)[0]):
            continue
        if not settings.allow_plaintext:
            raise PlaintextError(
                f"{name} {address} is reached from other machines, in plaintext: set"
                " --tls-certificate-file, listen on 127.0.0.1, or say --allow-plaintext"
            )
        observability.log("server.plaintext", level="warning", setting=name, address=address)


def server_credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """Return what the server proves itself with, or None where it speaks plaintext.

    Raises CertificateError.
    """
    if not settings.tls_certificate_file:
        if settings.tls_key_file or settings.tls_client_ca_file:
            raise CertificateError("a TLS key or client CA needs --tls-certificate-file as well")
        return None
    return Certificates(
        Path(settings.tls_certificate_file),
        Path(settings.tls_key_file or settings.tls_certificate_file),
        Path(settings.tls_client_ca_file) if settings.tls_client_ca_file else None,
    ).credentials()


class Certificates:
    """A certificate chain with its key and, for clients that are to have one, their CA.

    Each connection is given what the files hold when it is made. What cannot be used leaves the
    last one that could in force, so that half-written files harm nobody.
    """

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None) -> None:
        self._certificate, self._key, self._client_ca = certificate, key, client_ca
        self._stamp = self._stamped()
        self._initial = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Return gRPC's credentials, which ask for the files again at each handshake."""
        return grpc.dynamic_ssl_server_credentials(
            self._initial,
            self._changed,  # type: ignore[arg-type]  # None, for no change, is what gRPC asks for
            require_client_authentication=self._client_ca is not None,
        )

    def _files(self) -> list[Path]:
        return [each for each in (self._certificate, self._key, self._client_ca) if each]

    def _stamped(self) -> tuple[tuple[int, int, int], ...]:
        """Return what differs once a file was written or replaced."""
        try:
            found = [each.stat() for each in self._files()]
        except OSError:
            return ()
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the new configuration if the files changed, for gRPC, on a thread of its own."""
        stamp = self._stamped()
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        try:
            read = self._read()
        except CertificateError as error:
            observability.log("tls.not_reloaded", level="error", error=error)
            return None
        observability.log("tls.reloaded", certificate=str(self._certificate))
        return read

    def _read(self) -> grpc.ServerCertificateConfiguration:
        try:
            self._require_pair()
            chain, key = self._certificate.read_bytes(), self._key.read_bytes()
            roots = self._client_ca.read_bytes() if self._client_ca else None
        except (OSError, ssl.SSLError) as error:
            names = " and ".join(dict.fromkeys(map(str, self._files())))
            raise CertificateError(f"{names} cannot be used for TLS: {error}") from error
        return grpc.ssl_server_certificate_configuration([(key, chain)], roots)

    def _require_pair(self) -> None:
        """Let the standard library judge the files: gRPC takes any and fails at the handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, self._key, password="")
        if self._client_ca is not None:
            context.load_verify_locations(self._client_ca)
