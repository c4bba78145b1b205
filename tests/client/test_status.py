"""Each reason comes out of the wire as its class, with its facts; what is not ours is typed too."""

from __future__ import annotations

from typing import Any, get_type_hints

import grpc
import pytest
from foldlog import Violation, ViolationKind, errors
from foldlog.client.status import failure_of_element
from foldlog.core.errors import FoldlogError, InvalidFieldError, RequestNotDerivableError, leaves
from foldlog.server.errors import status_of
from foldlog.v1 import service_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2

SAMPLES: dict[object, Any] = {int: 7, str: "a b", tuple[str, ...]: ("x", "y")}
LEAVES = sorted(leaves(), key=lambda kind: kind.reason)
TRANSIENT = {"OVERLOADED", "SHUTTING_DOWN", "SLOW_READER", "STORE_UNAVAILABLE"}


def sample(kind: type[FoldlogError]) -> FoldlogError:
    """Return an error of the class with a value for each of its facts."""
    if kind is InvalidFieldError:
        return InvalidFieldError(fields={"events[1].body": "is unset"})
    if kind is RequestNotDerivableError:
        return RequestNotDerivableError(violation=Violation(ViolationKind.ORDER, 1, 2, 3))
    hints = {k: v for k, v in get_type_hints(kind).items() if k not in {"reason", "template"}}
    return kind(**{name: SAMPLES[hint] for name, hint in hints.items()})


def over_the_wire(error: FoldlogError) -> Any:
    """Return what the client makes of what the service sends."""
    status = status_of(error)
    element = service_pb2.ElementError(
        code=status.code, message=status.message, details=status.details
    )
    return failure_of_element(element)


def element(code: grpc.StatusCode, *details: Any) -> service_pb2.ElementError:
    """Return an element's error with these details."""
    packed = [AnyMessage() for _ in details]
    for each, detail in zip(packed, details, strict=True):
        each.Pack(detail)
    return service_pb2.ElementError(code=code.value[0], message="no", details=packed)


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.reason)
def test_a_reason_comes_back_as_its_class_with_its_facts(kind: type[FoldlogError]) -> None:
    sent = sample(kind)
    failure = over_the_wire(sent)
    assert type(failure.error) is kind
    assert vars(failure.error) == vars(sent)
    assert str(failure.error) == str(sent)


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.reason)
def test_only_what_passes_by_itself_is_tried_again(kind: type[FoldlogError]) -> None:
    failure = over_the_wire(sample(kind))
    assert failure.is_transient == (kind.reason in TRANSIENT)
    # A quota says when it is worth another try; whether it is, is not the client's to decide.
    assert (failure.delay_s > 0) == (kind.reason in TRANSIENT | {"QUOTA_EXCEEDED"})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.ConnectionLostError),
        (grpc.StatusCode.CANCELLED, errors.ConnectionLostError),
        (grpc.StatusCode.INTERNAL, errors.ConnectionLostError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceededError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.UnsupportedCallError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.TransportError),
        (grpc.StatusCode.INVALID_ARGUMENT, errors.TransportError),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_status_without_a_reason_is_a_transport_error(
    code: grpc.StatusCode, kind: type[errors.TransportError]
) -> None:
    error = failure_of_element(element(code)).error
    assert type(error) is kind
    assert isinstance(error, errors.TransportError)
    assert (error.status, error.details) == (code.name, "no")


def test_a_reason_of_a_newer_release_keeps_its_name_and_facts() -> None:
    info = error_details_pb2.ErrorInfo(domain="foldlog", reason="NEWER", metadata={"a": "1"})
    error = failure_of_element(element(grpc.StatusCode.ABORTED, info)).error
    assert isinstance(error, errors.UnknownReasonError)
    assert (error.reason_name, error.reason_metadata) == ("NEWER", {"a": "1"})


def test_a_reason_of_another_domain_is_not_ours() -> None:
    info = error_details_pb2.ErrorInfo(domain="proxy", reason="SEQ_CONFLICT")
    error = failure_of_element(element(grpc.StatusCode.ABORTED, info)).error
    assert type(error) is errors.TransportError


def test_details_that_do_not_decode_leave_the_code() -> None:
    broken = AnyMessage(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff")
    sent = service_pb2.ElementError(code=14, message="no", details=[broken])
    assert type(failure_of_element(sent).error) is errors.ConnectionLostError


def test_the_clients_own_errors_are_no_reasons() -> None:
    assert not [kind for kind in LEAVES if kind.__module__.startswith("foldlog.client")]
