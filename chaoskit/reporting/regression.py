"""From a finding to what is kept of it: a pytest file that fails until the task is mended, and the
draft of a bug report.

Both quote what the task wrote, so nothing of it can end a string, a comment or a block of code. The
test names its files relative to itself; credentials are read from the environment. The report holds
no path of this machine, and no token, since that would name them.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from chaoskit import __version__
from chaoskit.explore.clocks import concerning, unmoved
from chaoskit.model.findings import Finding
from chaoskit.model.history import History
from chaoskit.model.instances import file_of
from chaoskit.model.secrets import without_secrets
from chaoskit.model.token import CommandSpec, ReplayToken, Target
from chaoskit.reporting.clean import cleaned, names_secret, plain, without_credentials
from chaoskit.reporting.explanations import explanation, sentence
from chaoskit.reporting.markdown import block, code, words
from chaoskit.reporting.timeline import minimal, table, told
from chaoskit.reporting.typed import options_of

WIDTH = 96

_ABSOLUTE = re.compile(
    r"(?<![\w.:/…-])(?:file://)?/(?!v\d)(?:[^\s/'\"`<>|,;:()]+/)+([^\s/'\"`<>|,;:()]*)"
    r"|\b[A-Za-z]:\\(?:[^\\\s]+\\)+([^\\\s]*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One finding with its trial.

    ``between`` and ``code``: where the kill was, as a report says it; empty where not known.
    ``baseline``: an undisturbed run, where one is stored.
    """

    token: ReplayToken
    finding: Finding
    history: History
    between: str = ""
    code: str = ""
    baseline: History | None = None

    @property
    def name(self) -> str:
        """A name for files: the kind and the fingerprint."""
        return f"{self.finding.kind}_{self.finding.fingerprint}"


def pytest_file(exhibit: Exhibit, folder: Path) -> str:
    """A test that replays the trial and fails until it is FIXED.

    Args:
        exhibit: what to show.
        folder: where the file will be, for its relative paths.
    """
    token, finding = exhibit.token, cleaned(exhibit.finding)
    operation = re.sub(r"\W+", "_", finding.operation)
    target = _target(token.target, folder)
    imports = ["import os"] if "os.environ" in target else []
    kind = "CommandSpec, " if token.target.command is not None else ""
    lines = [
        '"""' + _quoted(f"{finding.kind} of {finding.operation}: fails until the task is mended."),
        "",
        *_wrapped(f"Expected {finding.expected}; seen {finding.seen}, because {finding.because}."),
        *_wrapped(f"Killed by {plain(token.schedule)}" + _after(", ", exhibit.between) + "."),
        "",
        f"Made by chaoskit export; chaoskit explain {finding.kind} says more.",
        '"""',
        "",
        *imports,
        *(["from os.path import abspath"] if "abspath(" in target else []),
        "from pathlib import Path",
        "",
        "from chaoskit.campaign.replay import recheck",
        f"from chaoskit.model.token import {kind}ReplayToken, Target",
        "",
        "HERE = Path(__file__).resolve().parent",
        "",
        "",
        f"def test_no_{finding.kind}_of_{operation}_{finding.fingerprint}():",
        '    """The trial that showed it shows nothing any more."""',
        "    token = ReplayToken(",
        f"        target={target},",
        f"        seed={token.seed!r},",
        f"        schedule={_literal(token.schedule)},",
        f"        fingerprint={_literal(finding.fingerprint)},",
        *([f"        take={token.take!r},"] if token.take is not None else []),
        *([f"        resume_after_s={token.resume_after_s},"] if token.resume_after_s else []),
        "    )",
        "    # Where the fixed task does not come to this point, all of its points are tried.",
        "    replayed = recheck(token)",
        '    assert replayed.outcome == "FIXED", replayed.sentence',
        "",
    ]
    return "\n".join(lines)


def bug_report(exhibit: Exhibit) -> str:
    """The draft of a bug report, in Markdown."""
    token, finding = exhibit.token, _anonymous(cleaned(exhibit.finding))
    known = explanation(finding.kind)
    between = without_paths(exhibit.between)
    place = without_paths(exhibit.code)
    clocks = unmoved(exhibit.history, token.resume_after_s)
    concerns = concerning(finding.operation, plain(clocks))
    lines = [
        f"# {words(finding.kind)}: {words(concerns)} after a kill and a resume",
        "",
        words(sentence(finding.kind)),
        "",
        f"- **expected** {code(finding.expected)}",
        f"- **seen** {code(finding.seen)}, because {code(finding.because)}",
        f"- **fault** {code(without_paths(token.schedule))}",
        *([f"- **between** {code(between)}"] if between else []),
        *([f"- **in code** {code(place)}"] if place else []),
        "",
        "## How to see it",
        "",
        f"With chaoskit {__version__}; `pip install .` in a clone of the project installs it.",
        "",
        *block([_command(token)], "console"),
        *_take(token.take),
        "",
        "## What happened",
        "",
        "The seconds since the trial began, the attempt, who, and what; only what shows the fault.",
        "",
        *block([without_paths(line) for line in _minimal(exhibit)]),
        "",
        "## Why",
        "",
        *_why(finding, known.how),
        "",
        "## Environment",
        "",
        _environment(),
        "",
    ]
    return "\n".join(lines)


def without_paths(text: str) -> str:
    """``text`` on one line; of an absolute path its name is kept, and all of it below the present
    folder.
    """
    shown = plain(text).replace(f"{Path.cwd()}{os.sep}", "")
    for folder in (Path.home(), Path(tempfile.gettempdir())):
        if len(folder.parts) > 1:  # there may be a space in it
            shown = shown.replace(str(folder), "/folder/of")
    return _ABSOLUTE.sub(lambda found: f"…/{found[1] or found[2] or ''}", shown)


def _environment() -> str:
    """Versions, as far as they say nothing of whose machine it is."""
    kernel = re.match(r"\d+(?:\.\d+)?", platform.release())
    system = f"{platform.system()} {kernel[0] if kernel else ''}".rstrip()
    python = f"Python {platform.python_version()}"
    return f"chaoskit {__version__}, {python}, {system} on {platform.machine()}"


def _anonymous(finding: Finding) -> Finding:
    texts = {
        name: without_paths(getattr(finding, name)) for name in ("expected", "seen", "because")
    }
    return msgspec.structs.replace(finding, **texts)


def _minimal(exhibit: Exhibit) -> list[str]:
    return table(list(told(exhibit.history, minimal(exhibit.history, exhibit.finding))))


def _why(finding: Finding, how: str) -> list[str]:
    if finding.diagnosis is None:
        return [words(how)]
    return [
        f"- **missing** {words(without_paths(finding.diagnosis.missing))}",
        f"- **evidence** {words(without_paths(finding.diagnosis.evidence))}",
        f"- **to mend** {words(without_paths(finding.diagnosis.mend))}",
    ]


def _take(take: int | None) -> list[str]:
    if take is None:
        return []
    items = "item is" if take == 1 else f"{take} items are"
    return ["", f"The first {items} enough of the task's input to see it."]


def _command(token: ReplayToken) -> str:
    """The command line that shows the finding, as far as it can be told without a token."""
    target = without_credentials(token.target)
    at = ["--at", plain(token.schedule), "--seed", str(token.seed)]
    if token.resume_after_s:
        at += ["--resume-after", f"{token.resume_after_s}s"]
    spec = target.command
    if spec is None:
        return without_paths(shlex.join(["chaoskit", "run", target.scenario, *at]))
    said = shlex.join(["chaoskit", "run", *options_of(spec), *at, "--", *spec.command])
    return without_paths(said)


def _target(target: Target, folder: Path) -> str:
    """An expression that makes ``target`` again from a test in ``folder``."""
    if target.command is None:
        path, colon, name = target.scenario.partition(":")
        named = f" + {colon + name!r}" if name else ""
        return f"Target(scenario={_located(path, folder)}{named})"
    return f"Target(command={_spec(target.command, folder)})"


_PLAIN = (
    *("outputs", "recorded", "contract", "behaviours", "ignore", "allow", "tables", "timeout_s"),
    *("attempts_max", "success", "typed", "clean", "key_lifetime", "resumed_within"),
)
"""Parts of a command's target that stand in a test as they are."""


def _spec(spec: CommandSpec, folder: Path) -> str:
    secrets: dict[str, str] = {}
    env = [
        f"{name!r}: "
        + (
            f"os.environ[{name!r}]"
            if names_secret(name)
            else _located(value, folder)
            if os.path.isabs(value) and os.path.exists(value) and not _of_the_system(value)
            else _word(value, secrets)
        )
        for name, value in spec.env.items()
    ]
    parts = [f"command={_words(spec.command, folder, secrets)}"]
    parts += [
        f"{name}={_words(words, folder, secrets)}"
        for name in ("resume", "control", "prepare")
        if (words := getattr(spec, name))
    ]
    if spec.services:
        parts.append(f"services=({', '.join(_service(n, folder) for n in spec.services)},)")
    if env:
        parts.append(f"env={{{', '.join(env)}}}")
    plain_one = CommandSpec(command=spec.command)
    parts += [
        f"{name}={value!r}"
        for name in _PLAIN
        if (value := getattr(spec, name)) != getattr(plain_one, name)
    ]
    inner = "".join(f"\n                {part}," for part in parts)
    return f"CommandSpec({inner}\n            )"


def _service(name: str, folder: Path) -> str:
    """The name of a service; one of a file is found from the test."""
    file, colon, maker = name.partition(":")
    return f"{_located(file, folder)} + {colon + maker!r}" if file_of(name) else repr(name)


def _words(given: Sequence[str], folder: Path, secrets: dict[str, str]) -> str:
    said = [
        _located(word, folder) if _is_own_file(word, first=not number) else _word(word, secrets)
        for number, word in enumerate(given)
    ]
    return f"({', '.join(said)},)"


def _is_own_file(word: str, *, first: bool) -> bool:
    """Whether ``word`` names a file of the project, and no program that is found by its name."""
    if not os.path.isabs(word) and not (first and os.sep in word):
        return False  # it is looked for on PATH, or in the folder where the task runs
    return os.path.isfile(word) and not _of_the_system(word)


def _of_the_system(path: str) -> bool:
    return path.startswith(("/bin/", "/usr/", "/opt/", "/sbin/", "/etc/", "/lib", "/dev/"))


def _word(word: str, secrets: dict[str, str]) -> str:
    """``word`` as an expression; from the environment if it holds a credential."""
    if without_secrets(word) == word:
        return repr(word)
    name = secrets.setdefault(word, f"CHAOSKIT_SECRET_{len(secrets) + 1}")
    return f"os.environ[{name!r}]"


def _located(path: str, folder: Path) -> str:
    """An expression for the file ``path``, from a test in ``folder``. A link stays one: the Python
    of a virtual environment is one, and behind it there are none of its packages.
    """
    relative = os.path.relpath(os.path.abspath(path), folder.resolve())
    return f"abspath(HERE / {_literal(Path(relative).as_posix())})"


def _literal(text: str) -> str:
    """``text`` as Python writes it, in double quotes where that changes nothing else."""
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written else written


def _after(mark: str, text: str) -> str:
    return f"{mark}{plain(text)}" if text else ""


def _quoted(text: str) -> str:
    """``text`` as it may stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(_quoted(text), WIDTH, break_long_words=False, break_on_hyphens=False)
