"""The store as the settings want it: in clear, or encrypted under the master keys they name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from foldlog import observability
from foldlog.persistence.errors import MasterKeyMissingError, crypto_extra
from foldlog.persistence.store import Store
from foldlog.private_file import require_private
from foldlog.settings import Settings

if TYPE_CHECKING:
    from foldlog.encryption.master_keys import MasterKeys

WHERE = "FOLDLOG_MASTER_KEY_FILE, FOLDLOG_MASTER_KEYS or FOLDLOG_MASTER_KEY_SERVICE"


def with_encryption(store: Store, settings: Settings) -> Store:
    """Return the store, encrypting if the settings have master keys.

    Raises MasterKeyMissingError if something in it is encrypted under a master key that is not
    there, unless the settings allow that, and ValueError for keys that cannot be used.
    """
    masters = master_keys_of(settings)
    missing = [each for each in key_ids(store) if masters is None or not masters.has(each)]
    if missing and (masters is None or not settings.allow_missing_master_keys):
        raise MasterKeyMissingError(missing[0], _said(store, missing, settings))
    if masters is None:
        return store
    if missing:
        observability.log("encryption.master_keys_missing", level="warning", key_ids=missing)
    from foldlog.encryption.store import encrypted

    return encrypted(store, masters)


def master_keys_of(settings: Settings) -> MasterKeys | None:
    """Return the master keys that the settings name, or None.

    Raises ValueError, which never has a key in it, and DriverMissingError without the extra.
    """
    given = [settings.master_key_file, settings.master_keys, settings.master_key_service]
    if not any(given):
        return None
    if sum(map(bool, given)) > 1:
        raise ValueError(f"master keys come from one place only: set one of {WHERE}")
    with crypto_extra():
        from foldlog.encryption.master_keys import LocalMasterKeys, parse
    if settings.master_key_service:
        return _service(settings.master_key_service)
    text = settings.master_keys or _read(Path(settings.master_key_file))
    return LocalMasterKeys(parse(text))


def _read(path: Path) -> str:
    try:
        require_private(path)
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the file of master keys cannot be read: {error}") from None


def _service(name: str) -> MasterKeys:
    module, colon, factory = name.partition(":")
    if not colon:
        raise ValueError(f"a service of master keys is named MODULE:FACTORY, not {name!r}")
    try:
        return cast("MasterKeys", getattr(import_module(module), factory)())
    except (ImportError, AttributeError) as error:
        raise ValueError(f"the service of master keys {name!r} is not there: {error}") from None


def key_ids(store: Store) -> list[str]:
    """Return the master keys under which anything in a store is encrypted."""
    return sorted({*store.data_keys.key_ids(), *store.objects.table.key_ids()})


def _said(store: Store, missing: list[str], settings: Settings) -> str:
    key_id = missing[0]
    sessions, attachments = store.data_keys.count(key_id), store.objects.table.count(key_id)
    others = f", and more under {', '.join(missing[1:])}" if missing[1:] else ""
    return (
        f"{sessions} sessions and {attachments} attachments are encrypted under the master key"
        f" {key_id!r}{others}, which this service does not have: name it in {WHERE}"
    )
