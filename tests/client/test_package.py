"""The package: quick to import, its names exact, both clients alike."""

from __future__ import annotations

import inspect
import subprocess
import sys

import foldlog
import pytest
from foldlog import AsyncClient, AsyncSession, Client, Session
from foldlog.client import methods
from foldlog.client.append_stream import AppendStream
from foldlog.client.async_append_stream import AsyncAppendStream
from foldlog.client.awaiting import AsyncItems
from foldlog.client.blocking import Items
from foldlog.core.errors import FoldlogError
from foldlog.v1 import service_pb2

TWINS = [
    (Client, AsyncClient),
    (Session, AsyncSession),
    (AppendStream, AsyncAppendStream),
    (Items, AsyncItems),
]
HEAVY = ("psycopg", "eventsourcing", "sqlalchemy", "typer", "rich", "foldlog.application")
METHODS = {m.name: m for m in vars(methods).values() if isinstance(m, methods.Method)}


def loaded_after(statement: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def under(modules: set[str], *roots: str) -> set[str]:
    """Return the modules that are, or are inside of, one of the roots."""
    return {m for m in modules if any(m == root or m.startswith(f"{root}.") for root in roots)}


def test_importing_the_package_loads_neither_grpc_nor_protobuf() -> None:
    assert not under(loaded_after("import foldlog"), "grpc", "google", *HEAVY)


def test_using_the_client_loads_nothing_of_the_service() -> None:
    loaded = loaded_after("from foldlog import Client, AsyncClient, user, errors")
    assert under(loaded, "grpc")
    assert not under(loaded, *HEAVY, "foldlog.server", "foldlog.persistence")


@pytest.mark.parametrize("name", foldlog.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(foldlog, name) is not None


def test_the_public_names_are_listed_once_and_in_order() -> None:
    assert list(foldlog.__all__) == sorted(set(foldlog.__all__))
    assert set(dir(foldlog)) == set(foldlog.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Thread'"):
        _ = foldlog.Thread


def test_the_errors_are_all_listed() -> None:
    errors = foldlog.errors
    found = {n for n, v in vars(errors).items() if isinstance(v, type) and n.endswith("Error")}
    assert set(errors.__all__) == found
    assert all(issubclass(getattr(errors, name), FoldlogError) for name in errors.__all__)


def test_importing_the_clients_loads_nothing_that_only_calls_need() -> None:
    operations = "foldlog.client.operations"
    loaded = loaded_after("from foldlog import AsyncClient, Client")
    assert under(loaded, "google", "foldlog.v1", operations) == {operations}
    loaded = loaded_after("from foldlog import Client; Client.create")
    assert under(loaded, operations) == {operations, f"{operations}.sessions"}


def test_a_method_is_made_once() -> None:
    assert foldlog.Session.append is foldlog.Session.append
    assert inspect.isfunction(vars(foldlog.Session)["append"])


@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: twins[0].__name__)
def test_both_clients_have_the_same_methods(twins: tuple[type, type]) -> None:
    blocking, awaiting = (public(kind) for kind in twins)
    assert blocking.keys() == awaiting.keys()
    for name, method in blocking.items():
        assert parameters(method) == parameters(awaiting[name]), name


def public(kind: type) -> dict[str, object]:
    """Return the public methods of a class, and how it is made."""
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: m for name, m in found if name == "__init__" or not name.startswith("_")}


def parameters(method: object) -> list[tuple[str, object, object]]:
    """Return the name, kind and default of each parameter."""
    assert callable(method)
    found = inspect.signature(method).parameters.values()
    return [(p.name, p.kind, p.default) for p in found]


def test_each_call_of_the_service_has_a_method_of_the_right_type() -> None:
    service = service_pb2.DESCRIPTOR.services_by_name["SessionService"]
    assert METHODS.keys() == set(service.methods_by_name)
    for name, method in METHODS.items():
        told = service.methods_by_name[name].output_type.name
        assert method.answer.DESCRIPTOR.name.removeprefix("Raw") == told
