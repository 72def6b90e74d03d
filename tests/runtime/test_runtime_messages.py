"""The messages in docs/runtime.md are those that a person meets.

To write them anew after a change: ``python tests/runtime/test_runtime_messages.py``.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pytest

from chaoskit.probe.clock import SHIFT_VARIABLE
from chaoskit.runtime import (
    Effect,
    OutcomeUnknown,
    Refused,
    Run,
    Tool,
    file_digest,
    mark,
    open_run,
    operating,
)
from chaoskit.runtime.owner import host_name, this_process

PAGE = Path(__file__).resolve().parents[2] / "docs" / "runtime.md"
BEGIN, END = "<!-- messages -->\n", "<!-- end of messages -->"
DAY = 86_400
OWNER = r"process \d+ on host [^,]+, since [-0-9]+ [:0-9]+ UTC"
MAILER = Tool("1.4", "https://mail.example.com")


class Stopped(BaseException):
    """Stands for the kill a week ago."""


def _stop(effect: Effect) -> NoReturn:
    raise Stopped(effect.step)


def _week_ago(folder: Path) -> None:
    """The run that was stopped in the middle of a payment."""
    (folder / "prices.csv").write_text("basic;10\n")
    with suppress(Stopped), _opened(folder) as run:
        _steps(run, folder)


def _opened(folder: Path, month: str = "2026-08", **tools: Tool) -> Run:
    return open_run(folder / "run.db", inputs={"month": month}, tools=tools or {"mailer": MAILER})


def _steps(
    run: Run, folder: Path, first: str = "load", pay: Callable[[Effect], None] = _stop
) -> None:
    run.pin("prices", file_digest(folder / "prices.csv"))
    run.step(first, lambda _: 1, read_only=True)
    run.step("check", lambda _: 1, read_only=True)
    run.step("pay", _stop, keyed=True, key_lasts=DAY)


def _tool_gone(folder: Path) -> None:
    _opened(folder, search=Tool("2"))


def _tool_changed(folder: Path) -> None:
    _opened(folder, mailer=Tool("2.0", "https://mail.example.com"))


def _file_edited(folder: Path) -> None:
    (folder / "prices.csv").write_text("basic;12\n")
    operating.settle(folder / "run.db", "default", "pay", happened=True)
    with _opened(folder) as run:
        _steps(run, folder)
        run.step("mail", _stop, needs=("prices",))


def _key_expired(folder: Path) -> None:
    before = os.environ.get(SHIFT_VARIABLE)
    os.environ[SHIFT_VARIABLE] = str(7 * DAY)
    try:
        with _opened(folder) as run:
            _steps(run, folder)
    finally:
        del os.environ[SHIFT_VARIABLE]
        if before is not None:
            os.environ[SHIFT_VARIABLE] = before


def _code_changed(folder: Path) -> None:
    with _opened(folder) as run:
        _steps(run, folder, first="read")


def _other_inputs(folder: Path) -> None:
    _opened(folder, month="2026-09")


def _cancelled(folder: Path) -> None:
    operating.cancel(folder / "run.db", "default", "wrong month")
    with _opened(folder) as run:
        _steps(run, folder)


def _owned(folder: Path) -> None:
    code = (
        "import sys\nfrom chaoskit.runtime import Tool, open_run\n"
        "tools = {'mailer': Tool('1.4', 'https://mail.example.com')}\n"
        "run = open_run(sys.argv[1], inputs={'month': '2026-08'}, tools=tools)\n"
        "print('open', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, folder / "run.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            _opened(folder)
        finally:
            process.kill()


def _elsewhere(folder: Path) -> None:
    owner = this_process(1_786_000_000)._replace(host="worker-7", pid=4242)
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("UPDATE runs SET owner = ?", (owner.text(),))
        connection.commit()
    _opened(folder)


def _poisoned(folder: Path) -> None:
    for _ in range(5):
        with suppress(Stopped), _opened(folder) as run:
            _steps(run, folder)


def _unknown(folder: Path) -> None:
    operating.settle(folder / "run.db", "default", "pay", happened=True)
    for _ in range(2):
        with suppress(Stopped), _opened(folder) as run:
            _steps(run, folder)
            run.step("mail", _stop)


def _older(folder: Path) -> None:
    store = folder / "run.db"
    copy = store.read_bytes()
    operating.settle(store, "default", "pay", happened=True)
    store.write_bytes(copy)
    _opened(folder)


def _gone(folder: Path) -> None:
    assert mark.read(folder / "run.db")
    (folder / "run.db").unlink()
    _opened(folder)


STORIES: dict[str, Callable[[Path], None]] = {
    "A tool has gone": _tool_gone,
    "A tool was replaced": _tool_changed,
    "A file that a later step needs was edited": _file_edited,
    "The service has forgotten the key": _key_expired,
    "Nothing can tell whether the mail went out": _unknown,
    "A step was renamed": _code_changed,
    "Other inputs": _other_inputs,
    "Somebody cancelled it": _cancelled,
    "It is still running": _owned,
    "It was running on another machine": _elsewhere,
    "A step kills its process each time": _poisoned,
    "The store was restored from an old backup": _older,
    "The store was removed": _gone,
}


def message(story: Callable[[Path], None], folder: Path) -> str:
    """What the story ends with, without what differs from one time to the next."""
    _week_ago(folder)
    try:
        story(folder)
    except (Refused, OutcomeUnknown) as end:
        text = str(end).replace(str(folder), "/srv/billing")
        text = text.replace(f"({host_name()})", "(worker-3)")
        text = re.sub(r"\b[0-9a-f]{32}\b", "5f2c…", text)
        text = re.sub(OWNER, "process 4242 on host …, since …", text)
        text = re.sub(r"\"?\b[0-9a-f]{64}\b\"?", '"9a01…"', text)
        return re.sub(r"\b[0-9a-f]{16}\b", "77ac…", text)
    raise AssertionError("the story had no end")


def wrapped(name: str, text: str) -> str:
    """A message as it stands on the page."""
    return f"**{name}**\n\n```text\n{text}\n```\n"


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder).resolve()


@pytest.mark.parametrize("name", STORIES)
def test_the_page_has_the_real_message(name: str, tmp_path: Path) -> None:
    """Each message on the page is what the runtime says in that situation, word by word."""
    assert wrapped(name, message(STORIES[name], tmp_path)) in PAGE.read_text(encoding="utf-8")


def test_the_page_has_no_message_of_its_own() -> None:
    """Between the marks stands nothing that is not checked."""
    text = PAGE.read_text(encoding="utf-8")
    between = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert re.findall(r"^\*\*(.+)\*\*$", between, re.MULTILINE) == list(STORIES)


def main() -> None:
    """Write the messages into the page."""
    parts = []
    for name, story in STORIES.items():
        with _folder() as folder:
            parts.append(wrapped(name, message(story, folder)))
    text = PAGE.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text(before + "\n" + "\n".join(parts) + "\n" + after, encoding="utf-8")


if __name__ == "__main__":
    main()
