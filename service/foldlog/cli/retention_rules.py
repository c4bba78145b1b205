"""Retention rules: which sessions go, by label and age, and how. Read from a TOML file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldlog import SessionInfo

AGE = re.compile(r"(\d+)\s*(m|h|d|w)")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
KEYS = frozenset({"name", "action", "labels", "not_written_for", "created_ago", "include_forks"})


class Action(StrEnum):
    """What a rule does with a session."""

    DELETE = "delete"
    SNAPSHOT = "snapshot"
    ERASE = "erase"


@dataclass(frozen=True, slots=True)
class Rule:
    """Sessions that bear all the labels and are as old as each age that is set."""

    name: str
    action: Action
    labels: Mapping[str, str] = field(default_factory=dict)
    not_written_for: timedelta | None = None
    created_ago: timedelta | None = None
    include_forks: bool = False

    def meets(self, info: SessionInfo, now: datetime) -> bool:
        """Tell whether a session falls under the rule."""
        return (
            self.labels.items() <= info.labels.items()
            and (self.not_written_for is None or info.update_time <= now - self.not_written_for)
            and (self.created_ago is None or info.create_time <= now - self.created_ago)
        )


def parse(text: str) -> list[Rule]:
    """Return the rules of a file, in its order. Raises ValueError naming the rule and the field."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {error}") from None
    given = document.pop("rules", None)
    if document:
        raise ValueError(f"{', '.join(sorted(document))}: only [[rules]] may stand there")
    if not isinstance(given, list) or not given:
        raise ValueError("it has no [[rules]]")
    return [_rule(number, each) for number, each in enumerate(given, 1)]


def _rule(number: int, given: Mapping[str, Any]) -> Rule:
    name = given.get("name", f"rule {number}")
    read = _Reader(f"rule {number}", given)
    unknown = sorted(given.keys() - KEYS)
    if unknown:
        raise read.wrong(unknown[0], f"it is none of {', '.join(sorted(KEYS))}")
    rule = Rule(
        read.of("name", str, name),
        read.action(),
        read.labels(),
        read.age("not_written_for"),
        read.age("created_ago"),
        read.of("include_forks", bool, False),
    )
    if rule.not_written_for is None and rule.created_ago is None:
        raise read.wrong("not_written_for", "an age is required, here or as created_ago")
    if rule.include_forks and rule.action is not Action.ERASE:
        raise read.wrong("include_forks", "only erase has it")
    return rule


class _Reader:
    """Reads the fields of one rule."""

    def __init__(self, where: str, given: Mapping[str, Any]) -> None:
        self._where = where
        self._given = given

    def wrong(self, name: str, what: str) -> ValueError:
        """Return the error that names a field."""
        return ValueError(f"{self._where}.{name}: {what}")

    def of(self, name: str, kind: type, default: Any) -> Any:
        """Return a field of a kind."""
        value = self._given.get(name, default)
        if not isinstance(value, kind):
            raise self.wrong(name, f"a {kind.__name__} is required")
        return value

    def action(self) -> Action:
        """Return what is to be done."""
        try:
            return Action(self._given.get("action", ""))
        except ValueError:
            raise self.wrong("action", f"one of {', '.join(Action)} is required") from None

    def labels(self) -> dict[str, str]:
        """Return the labels."""
        labels = self.of("labels", dict, {})
        if not all(isinstance(value, str) for value in labels.values()):
            raise self.wrong("labels", "texts are required")
        return dict(labels)

    def age(self, name: str) -> timedelta | None:
        """Return an age, such as 30d."""
        if name not in self._given:
            return None
        found = AGE.fullmatch(str(self._given[name]).strip())
        if found is None:
            raise self.wrong(name, "an age is required, such as 90m, 12h, 30d or 8w")
        return timedelta(**{UNITS[found[2]]: int(found[1])})


def rule_of(rules: Sequence[Rule], info: SessionInfo, now: datetime) -> Rule | None:
    """Return the first rule that a session falls under."""
    return next((rule for rule in rules if rule.meets(info, now)), None)
