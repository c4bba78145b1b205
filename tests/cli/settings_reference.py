"""The reference of the settings as Markdown, from the settings themselves.

`python -m tests.cli.settings_reference > docs/reference/settings.md`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from foldlog.settings import Limits, Setting, Settings, described

HEAD = """\
# Settings

Made from `service/foldlog/settings.py`; a test holds it to that.

Every setting has a variable of the environment. Each in the first table is a flag of
`foldlog serve` too: `FOLDLOG_DATABASE_URL` is `--database-url`. A flag goes before its variable,
and an empty variable counts as not set. `foldlog doctor` names variables that are no setting.

The command line and the client library read others: `FOLDLOG_ADDRESS`, the service's address,
unset: 127.0.0.1:50551; `FOLDLOG_API_KEY`, the [key](../how-to/keys.md) they call with, which the
command line takes from the file that `FOLDLOG_API_KEY_FILE` names, too; and for
[TLS](../how-to/tls.md) `FOLDLOG_TLS`, `FOLDLOG_CA_FILE`, `FOLDLOG_CLIENT_CERTIFICATE_FILE`,
`FOLDLOG_CLIENT_KEY_FILE` and `FOLDLOG_SERVER_NAME`. OpenTelemetry's own variables, such as
`OTEL_TRACES_EXPORTER`, say where traces go.

## The service
"""
LIMITS = """
## Limits

What exceeds one is refused with TOO_LARGE, which names the size and the limit. These are variables
only. Sizes are bytes where the name says so.
"""


def _table(settings: Iterable[Setting]) -> str:
    rows = ("| variable | unset | meaning |", "| --- | --- | --- |", *map(_row, settings))
    return "\n".join(rows) + "\n"


def _row(setting: Setting) -> str:
    default = "" if setting.default == "" else f"`{str(setting.default).lower()}`"
    allowed = f" One of {', '.join(setting.one_of)}." if setting.one_of else ""
    return f"| `{setting.environment_name}` | {default} | {setting.says}{allowed} |"


def settings_reference() -> str:
    """Return the whole reference."""
    return f"{HEAD}\n{_table(described(Settings))}{LIMITS}\n{_table(described(Limits))}"


if __name__ == "__main__":
    sys.stdout.write(settings_reference())
