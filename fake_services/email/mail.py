"""What a mail is, whichever door it came through, and the effect that it is booked as."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chaoskit.model.effects import Effect, flatten
from fake_services.texts import shortened

SUBJECT_CHARS = 60
"""A report names a mail by this much of its subject."""

NAMED_MAX = 3
"""A report names this many recipients and counts the rest."""

_ATOM = r'[^\s<>@,;:"()\[\]\\\x00-\x1f\x7f]+'
_ADDRESS = re.compile(rf"(?P<name>[^<>\x00-\x1f\x7f]*)<(?P<inner>{_ATOM}@{_ATOM})>|{_ATOM}@{_ATOM}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail as its sender asked for it.

    ``sender`` may carry a name (``Shop <shop@example.com>``); recipients are bare addresses.
    ``headers`` are those that the sender chose beyond the usual ones, in order, as written;
    ``message_id`` is the sender's own, with its brackets, or empty.
    """

    sender: str
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    subject: str = ""
    text: str = ""
    html: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    message_id: str = ""

    @property
    def recipients(self) -> tuple[str, ...]:
        """Everyone who gets it."""
        return self.to + self.cc + self.bcc


def effect_of(mail: Mail, *, key: str | None = None, ref: str = "") -> Effect:
    """The one effect that sending ``mail`` is, however many people get it.

    Args:
        mail: what was asked for.
        key: the idempotency key that came along.
        ref: the mailbox's own id of the sent mail.
    """
    fields: dict[str, object] = {
        "from": mail.sender,
        "to": _joined(mail.to),
        "subject": mail.subject,
        "body": shortened(_plain(mail.text or mail.html)),
    }
    if mail.cc:
        fields["cc"] = _joined(mail.cc)
    if mail.bcc:
        fields["bcc"] = _joined(mail.bcc)
    if mail.headers or mail.message_id:
        fields["headers"] = _grouped(mail)
    return Effect(
        service="email",
        kind="send",
        fields=flatten(fields),
        who=_named(mail.to or mail.recipients),
        what=f'mail "{_cut(mail.subject)}"',
        key=key,
        ref=ref,
    )


def parse_address(text: str) -> tuple[str, str] | None:
    """``Ann Lee <ann@example.com>`` as its name and its address; None where it is neither form."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    if found["inner"] is None:
        return "", found[0]
    return found["name"].strip().strip('"').strip(), found["inner"]


def with_name(name: str, address: str) -> str:
    """The inverse of `parse_address`, in the one spelling that both doors book."""
    return f"{name} <{address}>" if name else address


def bracketed(message_id: str) -> str:
    """A Message-ID with its angle brackets, which people tend to leave out."""
    bare = message_id.strip()
    return bare if not bare or bare.startswith("<") else f"<{bare}>"


def _joined(addresses: Iterable[str]) -> str:
    return ", ".join(sorted(addresses))


def _named(addresses: tuple[str, ...]) -> str:
    first = ", ".join(addresses[:NAMED_MAX])
    more = len(addresses) - NAMED_MAX
    return f"{first} and {more} more" if more > 0 else first


def _cut(subject: str) -> str:
    return subject if len(subject) <= SUBJECT_CHARS else f"{subject[: SUBJECT_CHARS - 1]}…"


def _plain(body: str) -> str:
    # SMTP turns every line end into CRLF and adds a last one; over HTTP the text comes as written.
    # The same mail must be the same effect through either door.
    return body.replace("\r\n", "\n").rstrip("\n")


def _grouped(mail: Mail) -> Mapping[str, object]:
    by_name: dict[str, list[str]] = {}
    for name, value in mail.headers:
        by_name.setdefault(name, []).append(value)
    if mail.message_id:
        by_name["Message-ID"] = [mail.message_id]
    return {n: values[0] if len(values) == 1 else values for n, values in by_name.items()}
