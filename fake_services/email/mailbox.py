"""The mailbox: every mail that was sent, and the look-ups by which a task can find one again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2s

from fake_services.email.mail import Mail, bracketed

HOSTNAME = "fake.email.test"
"""The provider's name in generated Message-IDs and in the SMTP greeting."""

Term = tuple[str, str]
"""One thing that a mail can be looked up by: ``("to", address)``, ``("header:x-order", "17")``."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A mail in the box. ``message_id`` is the sender's own or else made by the provider."""

    id: str
    mail: Mail
    message_id: str
    sent_s: float


class Mailbox:
    """Sent mails in order, with an index of every term of each; ids follow from ``seed``."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sent: list[Sent] = []
        self._terms: list[frozenset[Term]] = []
        self._positions: dict[Term, list[int]] = {}
        self._by_id: dict[str, int] = {}
        self._requests: list[int] = []

    def put(self, mail: Mail, now_s: float, request: int = 0) -> Sent:
        """Send ``mail`` at ``now_s``, seconds since the epoch, on the ``request``-th request.

        A Message-ID that was used before changes nothing: no mail server looks at it.
        """
        position = len(self._sent)
        digest = blake2s(f"{self._seed}.{position}".encode(), digest_size=12).hexdigest()
        message_id = mail.message_id or f"<{digest}@{HOSTNAME}>"
        sent = Sent(f"msg_{digest}", mail, message_id, now_s)
        terms = frozenset(_terms(sent))
        self._sent.append(sent)
        self._requests.append(request)
        self._terms.append(terms)
        self._by_id[sent.id] = position
        for term in terms:
            self._positions.setdefault(term, []).append(position)
        return sent

    def get(self, mail_id: str) -> Sent | None:
        """The mail with this id."""
        position = self._by_id.get(mail_id)
        return None if position is None else self._sent[position]

    def find(
        self,
        terms: Iterable[Term],
        *,
        after: str = "",
        limit: int = 100,
        horizon: int | None = None,
    ) -> tuple[Sequence[Sent], bool]:
        """Mails that have all ``terms``, oldest first, and whether there are more.

        Args:
            terms: from `term`; none means every mail.
            after: the id of the last mail of the page before; an unknown one starts at the front.
            limit: the most mails to return.
            horizon: mails of later requests than this one are not found; None: all are.
        """
        wanted = tuple(terms)
        start = self._by_id.get(after, -1)
        candidates: Sequence[int] = min(
            (self._positions.get(term, []) for term in wanted),
            key=len,
            default=range(len(self._sent)),
        )
        end = len(self._sent) if horizon is None else bisect_right(self._requests, horizon)
        page: list[Sent] = []
        for position in candidates[bisect_right(candidates, start) : bisect_left(candidates, end)]:
            if self._terms[position].issuperset(wanted):
                if len(page) == limit:
                    return page, True
                page.append(self._sent[position])
        return page, False


def term(name: str, value: str) -> Term:
    """What `Mailbox.find` takes: ``name`` is message_id, to, subject or ``header:<name>``.

    Addresses and header names are compared without regard to case, everything else exactly.
    """
    if name == "message_id" or name.lower() == "header:message-id":
        return "message_id", bracketed(value)
    if name == "to":
        return name, value.strip().lower()
    return name.lower(), value.strip()


def _terms(sent: Sent) -> Iterable[Term]:
    yield "message_id", sent.message_id
    yield term("subject", sent.mail.subject)
    for address in sent.mail.recipients:
        yield term("to", address)
    for name, value in sent.mail.headers:
        yield term(f"header:{name}", value)
