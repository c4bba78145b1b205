"""The server's life: open the store, serve, drain, close."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from foldlog import observability
from foldlog._grpc import aio
from foldlog.application.application import SessionApplication
from foldlog.application.audit import AuditLog
from foldlog.application.heads import Signer
from foldlog.application.tenant import Tenant
from foldlog.encryption.opening import with_encryption
from foldlog.persistence.store import open_store
from foldlog.persistence.timeouts import Timeouts
from foldlog.server.attachments import AttachmentServicer
from foldlog.server.authenticators import authenticator_of, require_auth
from foldlog.server.handlers import SERVICE, Handlers, Rpc
from foldlog.server.heads import HeadServicer
from foldlog.server.recovery import RecoveryServicer
from foldlog.server.reflecting import GuardedReflection
from foldlog.server.requests import RequestServicer
from foldlog.server.servicer import Servicer
from foldlog.server.single_requests import SingleRequests
from foldlog.server.tls import require_tls_beyond_loopback, server_credentials
from foldlog.server.transport import options_of
from foldlog.settings import Settings, is_open, require_guarded
from foldlog.v1 import service_pb2  # noqa: F401 - reflection serves what is imported


class Server:
    """A server on an open application."""

    def __init__(self, app: SessionApplication, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._stopping = asyncio.Event()
        self._health = HealthServicer()
        self._authenticator = authenticator_of(settings, app.store)
        self._server = aio.server(options=options_of(settings))

    async def start(self) -> str:
        """Begin to serve and return the address. Raises OSError if it cannot be listened on."""
        # Where nobody is known, nobody could be named.
        audit = None if self._settings.auth == "none" else AuditLog(self._app.tenant)
        handlers = Handlers(self._app, self._rpcs, self._authenticator, self._stopping, audit)
        server = SingleRequests(self._server, self._settings.request_timeout_s)
        server.add_generic_rpc_handlers((handlers.generic(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (SERVICE, "grpc.health.v1.Health", reflection.SERVICE_NAME)
        guarded = GuardedReflection(names, self._authenticator)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(guarded, server)
        host = self._settings.listen.rpartition(":")[0]
        try:
            port = self._listen()
        except RuntimeError as error:
            raise OSError(f"cannot listen on {self._settings.listen}") from error
        await self._app.start()
        await self._server.start()
        await self._tell(health_pb2.HealthCheckResponse.SERVING)
        return f"{host}:{port}"

    def _listen(self) -> int:
        """Take the port, with TLS or without."""
        credentials = server_credentials(self._settings)
        if credentials is None:
            return self._server.add_insecure_port(self._settings.listen)
        return self._server.add_secure_port(self._settings.listen, credentials)

    def _rpcs(self, tenant: Tenant) -> Mapping[str, Rpc]:
        return rpcs_of(tenant, self._stopping)

    async def stop(self) -> None:
        """Refuse new calls, end watches, let calls under way end within the grace, and close."""
        await self._health.enter_graceful_shutdown()
        self._stopping.set()
        await self._server.stop(self._settings.shutdown_grace_s)
        await self._authenticator.close()
        await self._app.stop()

    async def _tell(self, status: health_pb2.HealthCheckResponse.ServingStatus.ValueType) -> None:
        for name in ("", SERVICE):
            await self._health.set(name, status)


def rpcs_of(tenant: Tenant, stopping: asyncio.Event) -> Mapping[str, Rpc]:
    """Return every RPC of the service, over a tenant's calls."""
    return {
        **Servicer(tenant, stopping).rpcs(),
        **RecoveryServicer(tenant).rpcs(),
        **AttachmentServicer(tenant).rpcs(),
        **RequestServicer(tenant).rpcs(),
        **HeadServicer(tenant).rpcs(),
    }


def run(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. `ready` is called with the address once calls are taken.

    Raises PlaintextError, AuthSettingsError, OSError if the address cannot be listened on,
    CertificateError, SigningKeyError, and what `open_store` and `with_encryption` raise.
    """
    observability.setup(settings)
    require_tls_beyond_loopback(settings)
    require_guarded(settings)
    require_auth(settings)
    if is_open(settings):
        observability.log("server.anonymous", level="warning", address=settings.listen)
    signer = _signer(settings)
    store = open_store(
        settings.database_url,
        pool_size=settings.pool_size,
        reader_threads=settings.reader_threads,
        hint_url=settings.listen_database_url,
        object_directory=settings.object_directory,
        inline_bytes=settings.object_inline_bytes,
        timeouts=Timeouts(settings.statement_timeout_s, settings.commit_timeout_s),
        requires_row_security=settings.row_level_security == "required",
    )
    try:
        app = SessionApplication(with_encryption(store, settings), settings, signer)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(app, settings, ready))
    finally:
        store.close()


def look_for_cycles_seldom() -> None:
    """Let the collector of cycles pass by what is there for good, and come more seldom.

    Next to nothing here is in a cycle, and by default it takes a quarter of the time of a load.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _signer(settings: Settings) -> Signer | None:
    if not settings.signing_key_file:
        return None
    from foldlog.signing import SigningKey

    return SigningKey.read(Path(settings.signing_key_file))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


async def _serve(app: SessionApplication, settings: Settings, ready: Callable[[str], None]) -> None:
    server = Server(app, settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_, stop.set)
    address = await server.start()
    observability.log(
        "server.started",
        address=address,
        database=app.store.dialect,
        row_level_security=app.store.keeps_tenants_apart,
    )
    look_for_cycles_seldom()
    ready(address)
    await stop.wait()
    observability.log("server.stopping")
    await server.stop()
