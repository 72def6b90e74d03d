"""A mail as it travels over SMTP, read into a `Mail`. Any bytes at all give one.

The standard library splits the message into its parts. Its newer policy, which also decodes
headers, takes 3 ms per mail, ten times as long as the older one, and raises on some malformed
addresses; so the older one is used, and the few headers that matter are decoded here.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Sequence
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from email.policy import compat32
from email.utils import getaddresses

from fake_services.email.mail import Mail, bracketed, with_name

_USUAL = frozenset(
    {
        "from", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version",
        "received", "return-path", "user-agent", "x-mailer",
    }
)  # fmt: skip
"""Headers that are fields of their own, or that a mail program adds without being asked."""

_Headers = Sequence[tuple[str, str]]

_WORD = re.compile(r"=\?([^?*\s]+)(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?=")
_BETWEEN_WORDS = re.compile(r"(?<=\?=)\s+(?==\?)")
_FOLD = re.compile(r"\r?\n(?=[ \t])")


def read_mail(content: bytes, sender: str, recipients: Sequence[str]) -> Mail:
    """The mail that was sent as ``content``. Raises nothing.

    Args:
        content: the message after DATA.
        sender: the envelope's sender, for a message without a From header.
        recipients: the envelope's recipients. They decide who gets the mail; the headers only
            tell how each one is addressed, and whoever they do not name is a blind copy.
    """
    try:
        message = BytesParser(policy=compat32).parsebytes(content)
        text, html = _body(message)
    except RecursionError:
        # Parts within parts within parts: no mail program sends that, and the envelope still
        # tells who gets what.
        message = BytesHeaderParser(policy=compat32).parsebytes(content)
        text, html = content.decode("utf-8", "replace"), ""
    sender, recipients = _clean(sender), [_clean(recipient) for recipient in recipients]
    headers = [(_clean(str(n)), _unfolded(str(value))) for n, value in message.raw_items()]
    to, cc, bcc = _addressed(headers, recipients)
    return Mail(
        sender=_sender(headers) or sender,
        to=to,
        cc=cc,
        bcc=bcc,
        subject=_decoded(_first(headers, "subject")),
        text=text,
        html=html,
        headers=tuple((name, _decoded(text)) for name, text in headers if _chosen(name.lower())),
        message_id=bracketed(_first(headers, "message-id")),
    )


def _chosen(name: str) -> bool:
    return name not in _USUAL and not name.startswith("content-")


def _first(headers: _Headers, wanted: str) -> str:
    return next((text for name, text in headers if name.lower() == wanted), "")


def _sender(headers: _Headers) -> str:
    # Encoded words are resolved after the split: they may hide a comma.
    for name, address in getaddresses([_first(headers, "from")]):
        if address:
            return with_name(_decoded(name), address)
    return ""


def _addressed(
    headers: _Headers, recipients: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Who of ``recipients`` is named by To, who by Cc, and who by neither."""
    to, cc = _addresses(headers, "to"), _addresses(headers, "cc")
    if not to and not cc:
        return tuple(recipients), (), ()
    return (
        tuple(r for r in recipients if r.lower() in to),
        tuple(r for r in recipients if r.lower() in cc - to),
        tuple(r for r in recipients if r.lower() not in to | cc),
    )


def _addresses(headers: _Headers, wanted: str) -> frozenset[str]:
    written = [text for name, text in headers if name.lower() == wanted]
    return frozenset(address.lower() for _, address in getaddresses(written) if address)


def _unfolded(raw: str) -> str:
    """A header on one line, its raw UTF-8 (SMTPUTF8) resolved."""
    return _FOLD.sub("", _clean(raw)).strip()


def _clean(text: str) -> str:
    """Text that every encoder takes: bytes that were smuggled in are read as UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # half a character, as UTF-7 can write it
        return text.encode("utf-8", "replace").decode()


def _decoded(text: str) -> str:
    """A header with its encoded words (RFC 2047) resolved."""
    return _WORD.sub(_word, _BETWEEN_WORDS.sub("", text)) if "=?" in text else text


def _word(found: re.Match[str]) -> str:
    charset, encoding, encoded = found.groups()
    try:
        if encoding in "bB":
            raw = binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4))
        else:
            raw = binascii.a2b_qp(encoded, header=True)
        return _clean(raw.decode(charset, "replace"))
    except (LookupError, ValueError):
        return found[0]  # damaged, or in a charset that nobody knows: shown as it came


def _body(message: Message) -> tuple[str, str]:
    """The first plain text and the first HTML of a message that are not attachments."""
    found: dict[str, str] = {}
    for part in _leaves(message):
        kind = part.get_content_type()
        if part.get_content_disposition() != "attachment" and kind not in found:
            found[kind] = _text(part) if kind in {"text/plain", "text/html"} else ""
    return found.get("text/plain", ""), found.get("text/html", "")


def _leaves(message: Message) -> Iterator[Message]:
    # Unlike `Message.walk` this does not look into a forwarded mail, which is an attachment.
    if message.is_multipart() and message.get_content_maintype() == "multipart":
        for part in message.get_payload():
            if isinstance(part, Message):
                yield from _leaves(part)
    else:
        yield message


def _text(part: Message) -> str:
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return ""
    charset = part.get_content_charset("utf-8")
    if charset == "us-ascii":
        charset = "utf-8"  # what says ASCII and is not is UTF-8 more often than anything else
    try:
        return _clean(raw.decode(charset, "replace"))
    except (LookupError, ValueError):
        return raw.decode("utf-8", "replace")
