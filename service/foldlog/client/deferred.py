"""Methods that are made when they are first asked for.

A worker uses few of a client's methods. What the others need, their modules and the values of their
answers, is not imported with the client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Deferred:
    """Stands in a class for a method, and puts the method in its own place."""

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        method: Any = self._make()
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)
