"""Stripe's error bodies (Stripe API reference, Errors), and the exception that carries one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is not done: what Stripe would answer.

    ``kind`` is the error's ``type``; ``more`` are members that only some errors have, such as
    ``decline_code``.
    """

    status: int
    kind: str
    message: str
    code: str | None = None
    param: str | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def body(self) -> Mapping[str, object]:
        """The JSON value of the answer."""
        error: dict[str, object] = {"message": self.message, "type": self.kind}
        if self.code is not None:
            error["code"] = self.code
            name = self.code.replace("_", "-")
            error["doc_url"] = f"https://stripe.com/docs/error-codes/{name}"
        if self.param is not None:
            error["param"] = self.param
        return {"error": {**error, **self.more}}


class RefusedError(Exception):
    """Ends the handling of a request with its refusal as the answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def invalid(
    message: str, *, param: str | None = None, code: str | None = None, status: int = 400
) -> RefusedError:
    """An ``invalid_request_error``."""
    return RefusedError(
        Refusal(
            status=status, kind="invalid_request_error", message=message, code=code, param=param
        )
    )


def missing(param: str) -> RefusedError:
    """A parameter that Stripe requires is not there."""
    return invalid(f"Missing required param: {param}.", param=param, code="parameter_missing")


def no_such(thing: str, ref: str, *, param: str = "id", status: int = 400) -> RefusedError:
    """No object has this id. ``status`` is 404 where the id stands in the path."""
    return invalid(f"No such {thing}: '{ref}'", param=param, code="resource_missing", status=status)


def refused(status: int, message: str) -> Refusal:
    """What Stripe says with ``status`` to a request that it does not look at.

    Source: API reference, Errors, HTTP status code summary.
    """
    if status == 402:
        return Refusal(
            status=status,
            kind="card_error",
            code="card_declined",
            message=message,
            more={"decline_code": "generic_decline"},
        )
    if status == 429:
        return Refusal(
            status=status, kind="invalid_request_error", code="rate_limit", message=message
        )
    return Refusal(
        status=status,
        kind="api_error" if status >= 500 else "invalid_request_error",
        message=message,
    )
