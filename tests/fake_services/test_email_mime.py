"""Mails as they travel over SMTP, read into values."""

from __future__ import annotations

import string
from email import policy
from email.header import Header
from email.message import EmailMessage
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fake_services.email.mail import effect_of
from fake_services.email.mime import read_mail

_words = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1)
_lines = st.lists(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))), min_size=1)


def written(**parts: Any) -> bytes:
    """A mail as a program writes it with the standard library."""
    message = EmailMessage()
    message["From"] = parts.get("sender", "Shop <shop@example.com>")
    message["To"] = parts.get("to", "Ann <ann@example.com>")
    for name, value in parts.get("headers", {}).items():
        message[name] = value
    message.set_content(parts.get("text", "Hello\n"))
    if "html" in parts:
        message.add_alternative(parts["html"], subtype="html")
    for name in parts.get("attachments", ()):
        message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename=name)
    return message.as_bytes(policy=policy.SMTP)


@given(words=st.lists(_words, max_size=6), lines=_lines, raw=st.booleans())
def test_any_subject_and_body_survive(words: list[str], lines: list[str], raw: bool) -> None:
    """Whatever a program writes, in encoded words or in raw UTF-8, is read back."""
    assume("=?" not in "".join(words))  # in raw text that would be an encoded word
    subject, text = " ".join(words), "".join(f"{line}\n" for line in lines)
    header = subject if raw else Header(subject, "utf-8").encode(linesep="\r\n")
    content = f"Subject: {header}\r\n".encode() + written(text=text)
    mail = read_mail(content, "x@example.com", ["ann@example.com"])
    assert mail.subject == subject
    assert mail.text.replace("\r\n", "\n") == text


@given(
    content=st.binary()
    | st.text(string.printable).map(str.encode)
    | st.lists(
        st.tuples(
            st.sampled_from(["From", "To", "Subject", "Content-Type", "Message-ID", "X-A", "CTE"]),
            st.text(st.sampled_from('=?utf8qbB,;:<>@"()ab \r\n\t\x00é/')),
        )
    ).map(lambda pairs: "".join(f"{n}: {v}\r\n" for n, v in pairs).encode() + b"\r\nbody"),
)
def test_no_bytes_are_too_odd(content: bytes) -> None:
    """Any bytes give a mail for the envelope's recipients, whose effect can be booked."""
    mail = read_mail(content, "x@example.com", ["ann@example.com"])
    assert mail.recipients == ("ann@example.com",)
    msgspec.json.encode(effect_of(mail))


@pytest.mark.parametrize(
    "content",
    [
        b"".join(
            b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (i, i)
            for i in range(2000)
        ),
        b"Content-Type: text/plain; charset=nonsense\r\n\r\nHi",
        b"Content-Type: text/plain; charset=punycode\r\n\r\nH\xe9-\xff",
        b"Content-Transfer-Encoding: base64\r\n\r\n!!!",
        b"Subject: =?utf-8?b?!!!?= =?nonsense?q?x?=\r\n\r\n",
        b"Subject: =?utf-7?q?+2AA-?=\r\nContent-Type: text/plain; charset=utf-7\r\n\r\n+2AA-",
        b"X-\xff: \xff\r\n\r\n\xff",
        b"To: undisclosed-recipients:;\r\n\r\nHi",
    ],
)
def test_damaged_mails_are_still_mails(content: bytes) -> None:
    """Endless nesting, unknown charsets and broken encodings lose their text, not the mail."""
    mail = read_mail(content, "\udcff@example.com", ["ann@\udcff"])
    assert mail.recipients == ("ann@\ufffd",)
    msgspec.json.encode(effect_of(mail))


def test_the_envelope_decides_who_gets_it() -> None:
    """The headers only say how a recipient is addressed; whoever they leave out is a blind copy."""
    content = written(
        to="Ann <ann@example.com>, nobody@example.com", headers={"Cc": "Cy <CY@example.com>"}
    )
    mail = read_mail(content, "s", ["eve@example.com", "cy@example.com", "ann@example.com"])
    assert mail.to == ("ann@example.com",)
    assert mail.cc == ("cy@example.com",)
    assert mail.bcc == ("eve@example.com",)


def test_without_headers_the_envelope_is_all_there_is() -> None:
    """A bare text is a mail from the envelope's sender to its recipients."""
    mail = read_mail(b"just text", "shop@example.com", ["ann@example.com"])
    assert (mail.sender, mail.to) == ("shop@example.com", ("ann@example.com",))


def test_the_text_part_is_the_body() -> None:
    """Of several parts the plain text counts, not its HTML twin and not an attachment."""
    mail = read_mail(
        written(text="plain\n", html="<b>rich</b>\n", attachments=["a.pdf"]), "", ["a@b"]
    )
    assert mail.text.strip() == "plain"
    assert mail.html.strip() == "<b>rich</b>"


def test_a_forwarded_mail_is_not_the_body() -> None:
    """The text of an attached mail is not taken for that of the mail around it."""
    inner, outer = EmailMessage(), EmailMessage()
    inner.set_content("inner")
    outer["To"] = "ann@example.com"
    outer.add_attachment(inner)
    assert read_mail(outer.as_bytes(), "", ["ann@example.com"]).text == ""


def test_only_chosen_headers_are_kept() -> None:
    """What every mail program adds by itself is no part of the effect; what was chosen is."""
    content = written(
        headers={
            "X-Order": "17",
            "Reply-To": "help@example.com",
            "Message-ID": "<17@shop>",
            "Date": "Mon, 01 Jan 2024 00:00:00 +0000",
            "Received": "from somewhere",
            "X-Mailer": "m",
        },
        html="<b>",
    )
    mail = read_mail(content, "", ["ann@example.com"])
    assert mail.headers == (("X-Order", "17"), ("Reply-To", "help@example.com"))
    assert mail.message_id == "<17@shop>"
    assert "boundary" not in str(effect_of(mail))


def test_a_name_with_a_comma_is_one_name() -> None:
    """An encoded name is decoded after the addresses were split, so its comma splits nothing."""
    content = b"From: =?utf-8?q?M=C3=BCller=2C_J?= <j@example.com>\r\n\r\n"
    assert read_mail(content, "", ["a@b"]).sender == "Müller, J <j@example.com>"
