"""A multi-file migration: a copy of real packages, each file rewritten once, the rest of the world
told at the end.

A file's rewriting is not repeatable (it adds a header and renames a name), so doing one twice would
show. Relies on rename being atomic, and on a mail that went out being findable by its Message-ID: a
mail by plain SMTP has no key, so it is exactly once only if none is under way at a resume.
"""

from __future__ import annotations

import asyncio
import email
import hashlib
import json
import os
import re
import shutil
import smtplib
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import _shop as shop

from chaoskit import Scenario
from chaoskit.runtime import Effect, open_run

PACKAGES = (asyncio, email, json)
SOURCE = "src"
FEW = 6


def prepare(folder: Path, seed: int) -> None:
    """Copy the sources that are to be migrated."""
    for package in PACKAGES:
        home = Path(package.__file__ or "").parent
        shutil.copytree(
            home, folder / SOURCE / package.__name__, ignore=shutil.ignore_patterns("__pycache__")
        )


def _prepare_few(folder: Path, seed: int) -> None:
    prepare(folder, seed)
    for file in sorted((folder / SOURCE).rglob("*.py"))[FEW:]:
        file.unlink()


def main() -> None:
    """Rewrite every file once and report it."""
    root = shop.STATE / SOURCE
    with open_run(shop.STATE / "run.db", inputs={"root": SOURCE}) as run:
        if run.finished:
            return
        plan = run.step("plan", lambda effect: digests(root), read_only=True)
        for name, before in plan.items():
            file = root / name

            def rewritten(effect: Effect, file: Path = file, before: str = before) -> str | None:
                now = digest(file.read_bytes())
                return now if now != before else None

            run.step(
                f"file/{name}",
                lambda effect, file=file: rewrite(file),  # type: ignore[misc]
                inputs={"before": before},
                look_up=rewritten,
            )
        services = shop.Shop()
        run.step(
            "report",
            lambda effect: _report(effect.key, len(plan)),
            look_up=lambda effect: services.find_mail(_id(effect.key)),
        )
        run.finish(len(plan))


def rewrite(file: Path) -> str:
    """The migration of one file: the digest of its new content."""
    text = file.read_text(encoding="utf-8")
    lines = text.count("\n")
    text = f"# migrated: {lines} lines\n" + re.sub(r"\bself\b", "this", text)
    data = text.encode()
    beside = file.with_suffix(".new")
    with beside.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    beside.replace(file)
    return digest(data)


def digests(root: Path) -> dict[str, str]:
    """The digest of every source file below ``root``, by its path there."""
    files = sorted(root.rglob("*.py"))
    return {f.relative_to(root).as_posix(): digest(f.read_bytes()) for f in files}


def digest(data: bytes) -> str:
    """What tells one content of a file from another."""
    return hashlib.sha256(data).hexdigest()[:16]


def _report(key: str, number: int) -> str:
    message = EmailMessage()
    message["From"] = "migration@example.com"
    message["To"] = "team@example.com"
    message["Subject"] = "Migration done"
    message["Message-ID"] = _id(key)
    message.set_content(f"{number} files were rewritten.\n")
    host, port = os.environ["CHAOSKIT_SMTP_HOST"], int(os.environ["CHAOSKIT_SMTP_PORT"])
    with smtplib.SMTP(host, port, local_hostname="localhost") as smtp:
        smtp.send_message(message)
    return str(message["Message-ID"])


def _id(key: str) -> str:
    return f"<{key}@migration.example.com>"


scenario = Scenario(
    title="a multi-file migration: each of some eighty source files rewritten exactly once",
    task=main,
    services=("email",),
    settled=("email.send",),
    prepare=prepare,
    outputs=("src/**/*.py",),
    checkpoints=("run.db",),
)

few = replace(scenario, title="the same with six files", prepare=_prepare_few)
