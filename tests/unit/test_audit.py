"""Reading what pip-audit reports."""

from __future__ import annotations

from tests.tools.audit import read

SOUND = {"name": "rich", "version": "15.0", "vulns": []}
UNKNOWN = {"name": "ours", "skip_reason": "Dependency not found"}
HOLED = {"name": "old", "version": "1.0", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}


def test_a_vulnerable_package_is_named_with_what_it_has() -> None:
    found = read({"dependencies": [SOUND, HOLED]})
    assert found.vulnerable == {"old 1.0": ["CVE-1", "CVE-2"]}
    assert "old 1.0: CVE-1, CVE-2" in found.said()
    assert "INCOMPLETE" not in found.said()


def test_what_could_not_be_judged_is_said_aloud_and_is_not_sound() -> None:
    found = read({"dependencies": [SOUND, UNKNOWN]})
    assert (found.judged_count, found.unjudged) == (1, ["ours"])
    assert "AUDIT INCOMPLETE: 1 packages" in found.said()
