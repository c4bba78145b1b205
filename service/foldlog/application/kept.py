"""What a process keeps in memory of what it read, bounded by bytes and shared by its tenants."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by key; those kept first go first when there is no room. For one thread."""

    def __init__(self, max_bytes: int, size_of: Callable[[V], int]) -> None:
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._held: OrderedDict[K, V] = OrderedDict()
        self._unused: set[K] = set()
        self._size = 0

    def __contains__(self, key: K) -> bool:
        return key in self._held

    def get(self, key: K) -> V | None:
        """Return a value if it is kept."""
        self._unused.discard(key)
        return self._held.get(key)

    def keep(self, key: K, value: V) -> None:
        """Keep a value, as long as there is room."""
        if key in self._held:
            return
        self._held[key] = value
        self._size += self._size_of(value)
        while self._size > self._max_bytes:
            _, oldest = self._held.popitem(last=False)
            self._size -= self._size_of(oldest)

    def forget(self, key: K) -> None:
        """Forget a value if it is kept."""
        value = self._held.pop(key, None)
        if value is not None:
            self._size -= self._size_of(value)

    def forget_unused(self) -> int:
        """Forget what nobody asked for since the call before, and return how many that were."""
        unused = [key for key in self._unused if key in self._held]
        for key in unused:
            self.forget(key)
        self._unused = set(self._held)
        return len(unused)

    def forget_all(self, is_gone: Callable[[K], bool]) -> None:
        """Forget the values of some keys. Costs a look at every key."""
        for key in [key for key in self._held if is_gone(key)]:
            self.forget(key)


class SharedKept(Kept[K, V]):
    """The same for many threads."""

    def __init__(self, max_bytes: int, size_of: Callable[[V], int]) -> None:
        super().__init__(max_bytes, size_of)
        self._lock = RLock()

    def keep(self, key: K, value: V) -> None:
        """Keep a value, as long as there is room."""
        with self._lock:
            super().keep(key, value)

    def forget(self, key: K) -> None:
        """Forget a value if it is kept."""
        with self._lock:
            super().forget(key)

    def forget_unused(self) -> int:
        """Forget what nobody asked for since the call before, and return how many that were."""
        with self._lock:
            return super().forget_unused()
