"""The replay token: the text that names one trial, complete enough to run it again elsewhere.

ck1-<base64url of deflated JSON><four check digits>
"""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec

from chaoskit.model.errors import FormatError, UsageError

PREFIX = "ck1-"
_CHECK = 4
_BROKEN = (binascii.Error, zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scenario given on the command line instead of in a file.

    ``typed``: it runs in the folder in which chaoskit is started, as if typed there; otherwise in
    the work folder. ``clean``: files and folders that it does not find, although they are there.
    ``key_lifetime`` and ``resumed_within``: as in `chaoskit.model.scenario.Scenario`.
    """

    command: tuple[str, ...]
    resume: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    env: dict[str, str] = {}
    services: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    contract: dict[str, str] = {}
    behaviours: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    tables: str = ""
    allow: tuple[str, ...] = ()
    timeout_s: float | None = None
    typed: bool = False
    clean: tuple[str, ...] = ()
    key_lifetime: dict[str, str] = {}
    resumed_within: str = ""


class Target(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a campaign is about: a scenario file (``path`` or ``path:name``) or a command."""

    scenario: str = ""
    command: CommandSpec | None = None

    @property
    def label(self) -> str:
        """A short name for reports."""
        if self.command is not None:
            return " ".join(self.command.command)
        return self.scenario


class ReplayToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One trial: target, seed, schedule (text form) and the finding it showed.

    ``take``: only so many leading items of the inputs, which are a list; None: the inputs as made.
    ``resume_after_s``: after each kill all clocks advance by that much.
    """

    target: Target
    seed: int
    schedule: str
    fingerprint: str = ""
    take: int | None = None
    resume_after_s: int = 0

    def __str__(self) -> str:
        try:
            packed = zlib.compress(msgspec.json.encode(self), 9)
        except UnicodeEncodeError as broken:
            raise UsageError(f"a replay token cannot hold {broken.object!r}: not UTF-8") from broken
        body = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return f"{PREFIX}{body}{_check(body)}"


def parse_token(text: str) -> ReplayToken:
    """The token that ``text`` is; the inverse of ``str(token)``.

    Raises:
        FormatError: another version, cut short, or not a token at all.
    """
    text = text.strip()
    if not text.startswith(PREFIX):
        raise FormatError(
            f"not a replay token of this version: it begins with {text[:8]!r}, not {PREFIX!r}"
        )
    if not text.isascii():
        raise FormatError("this replay token is damaged: it has characters that no token has")
    body, check = text[len(PREFIX) : -_CHECK], text[-_CHECK:]
    if _check(body) != check:
        raise FormatError("this replay token is damaged or cut short: paste the whole of it")
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        return msgspec.json.decode(zlib.decompress(packed), type=ReplayToken)
    except _BROKEN as broken:
        raise FormatError(f"this replay token cannot be read: {broken}") from broken


def _check(body: str) -> str:
    return f"{zlib.crc32(body.encode()) & 0xFFFF:04x}"
