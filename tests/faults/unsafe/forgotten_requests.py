"""Foldlog, but it knows no request again: each is taken for a new one."""

from __future__ import annotations

from foldlog.application.domain import RequestKey
from foldlog.application.writing import Writing

from tests.faults.unsafe.serving import serve_with

keep_request = Writing.request


def request(self: Writing, _request_id: str, *content: bytes) -> RequestKey:
    """Return a write's key as if the client had given no id."""
    return keep_request(self, "", *content)


if __name__ == "__main__":
    serve_with(Writing, "request", request)
