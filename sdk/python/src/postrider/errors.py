"""What can go wrong between your code and the server.

    PostriderError
      BadArgument         what was asked cannot be asked; nothing was sent (also a ValueError)
      Unreachable         no answer came (also a ConnectionError); `maybe_taken` says whether the server may have the request all the same
        TimedOut          none in time (also a TimeoutError)
      UnreadableAnswer    something answered that does not speak this API
      Refused             the server said no; `errors` names the fields
        Invalid           400, 413, 415, 422
        Unauthorized      401
        Forbidden         403
        NotFound          404 (also a LookupError)
        Conflict          409
        TooManyRequests   429; `retry_after` in seconds, when the server named one
        Unavailable       500 and above; `retry_after` likewise
      NotDelivered        only where a call cannot return a result; `result` has all of it

A remote system that refused or did not answer is no error: it is in the result object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

if TYPE_CHECKING:
    from .results import Result


class PostriderError(Exception):
    """Every error of this package."""


class BadArgument(PostriderError, ValueError):
    """What was asked cannot be asked, and nothing was sent."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class Unreachable(PostriderError, ConnectionError):
    """No answer came from the server. `maybe_taken` is False where the request cannot have reached it."""

    def __init__(self, server: str, reason: str, *, maybe_taken: bool) -> None:
        taken = "it is not known whether it has the request" if maybe_taken else "it does not have the request"
        super().__init__(f"no answer from {server}: {reason} ({taken})")
        self.server = server
        self.reason = reason
        self.maybe_taken = maybe_taken


class TimedOut(Unreachable, TimeoutError):
    """No answer came in time."""


class UnreadableAnswer(PostriderError):
    """Something answered that does not speak this API, a proxy for one. `status` is None where it was not even HTTP."""

    def __init__(self, server: str, reason: str, status: Optional[int] = None) -> None:
        answered = f"{server} answered" if status is None else f"{server} answered {status}"
        super().__init__(f"{answered} with something unreadable: {reason}")
        self.server = server
        self.reason = reason
        self.status = status


@dataclass(frozen=True)
class FieldError:
    """One field that was refused: what is wrong with it, and what is allowed."""

    field: str
    message: str
    allowed: Optional[str] = None


class Refused(PostriderError):
    """The server said no (`application/problem+json`, RFC 9457); nothing was changed."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        errors: Sequence[FieldError] = (),
        retry_after: Optional[float] = None,
        more: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(f"{status} {title}: {detail}" if detail else f"{status} {title}")
        self.status = status
        self.title = title
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.more: Mapping[str, Any] = dict(more or {})
        """Further members of the problem."""

    @property
    def code(self) -> Optional[str]:
        """The server's own word for the reason, such as `already_delivered` or `outcome_unknown`, where it gives one."""
        code = self.more.get("code")
        return code if isinstance(code, str) else None

    @property
    def fields(self) -> Sequence[str]:
        """The names of the fields that were refused."""
        return [error.field for error in self.errors]


class Invalid(Refused):
    """400, 413, 415, 422: the request itself is at fault."""


class Unauthorized(Refused):
    """401: no key, or not a valid one."""


class Forbidden(Refused):
    """403: the key does not reach so far."""


class NotFound(Refused, LookupError):
    """404: there is no such thing, or not for this key."""


class Conflict(Refused):
    """409: it does not fit what is there; `code` says why where there is one."""


class TooManyRequests(Refused):
    """429: later."""


class Unavailable(Refused):
    """500 and above: the server cannot do it now."""


class NotDelivered(PostriderError):
    """A request was not delivered, where no result could be returned."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.error or "not delivered")
        self.result = result


def kind_of(status: int) -> type[Refused]:
    """The class of a refusal with this status."""
    known = {401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 429: TooManyRequests}
    if status in known:
        return known[status]
    return Unavailable if status >= 500 else Invalid
