"""``run --soak``, ``run --shrink`` and ``shrink`` as users call them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chaoskit.cli.soak import duration_s
from chaoskit.model.errors import UsageError
from tests.campaign.small_task import small_task
from tests.cli.test_cli import Shell

TWO = "kill@payments.charge#3.applied / kill@1ms"
WINDOWS = ("--mechanisms", "windows")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """chaoskit in a folder with two small tasks."""
    shell = Shell(tmp_path)
    small_task(tmp_path, "keyed")
    (tmp_path / "small_task.py").rename(tmp_path / "sound.py")
    small_task(tmp_path, "none")
    (tmp_path / "small_task.py").rename(tmp_path / "broken.py")
    return shell


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("10m", 600.0), ("1h", 3600.0), ("0.5m", 30.0)]
)
def test_durations(text: str, seconds: float) -> None:
    """Seconds, minutes and hours."""
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "0s", "-1s", "1d", "1h30m", "ten minutes", "1e9s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The message says how one is written."""
    with pytest.raises(UsageError, match="as in 90s, 10m or 1h"):
        duration_s(text)


def test_a_soak_says_what_it_proves(shell: Shell) -> None:
    """Trials, failures, seed and the bound, for people and in the JSON report; exit 0."""
    words = ("run", "sound.py", "--soak", "1h", "--max-points", "8", "--seed", "3", *WINDOWS)
    code, out, _ = shell(*words, "--json", "out.json")
    text = re.sub(r"\s+", " ", out)
    report = json.loads((shell.folder / "out.json").read_text())
    soak = report["soak"]
    assert code == 0
    assert soak["sentence"] in text
    assert "of schedules drawn like these fail" in text
    assert "drawn by seed 3, 1 to 3 faults a trial" in text
    assert (soak["failures"], soak["seed"], soak["asked_s"]) == (0, 3, 3600)
    assert soak["trials"] == report["trials"] == 8 - soak["missed"]
    assert report["mechanisms"] == ["windows", "times"]


def test_a_soak_of_a_broken_task_says_how_often_and_how_steadily(shell: Shell) -> None:
    """Exit 1, the rate's interval, and of each failure that was repeated how often it showed."""
    words = ("run", "broken.py", "--soak", "1h", "--max-points", "8", "--depth", "1", *WINDOWS)
    code, out, _ = shell(*words, "--no-shrink")
    text = re.sub(r"\s+", " ", out)
    assert code == 1
    assert re.search(r"\d of \d trials failed: with 95 % confidence, [\d.]+ % to [\d.]+ %", text)
    assert "STEADY 5/5 (at least 54 %)" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--soak", "soon"], "as in 90s, 10m or 1h"),
        (["--soak", "1m", "--at", "payments.charge#1.applied"], "--at does not go with --soak"),
        (["--soak", "1m", "--times", "5"], "--times does not go with --soak"),
    ],
)
def test_words_that_contradict_a_soak_are_refused(
    shell: Shell, words: list[str], says: str
) -> None:
    """A usage error, which names the option."""
    code, out, err = shell("run", "sound.py", *words)
    assert (code, says in re.sub(r"\s+", " ", out + err)) == (2, True), out + err


def test_a_token_is_shrunk_and_what_is_left_replays(shell: Shell) -> None:
    """It says what smaller means and how many trials it took; its last line is a replay's."""
    code, out, _ = shell("run", "broken.py", "--at", TWO, *WINDOWS, "--no-shrink")
    assert code == 1
    token = next(line for line in out.splitlines() if line.startswith("chaoskit replay")).split()[2]
    code, out, _ = shell("shrink", token, *WINDOWS)
    assert code == 1, out
    assert "smaller is: fewer faults, then fewer attempts" in out
    assert "smallest  kill@payments.charge#1.applied, with the first item of the input" in out
    assert re.search(r"\d+ trials, 3 surveys", out)
    assert "REPRODUCED" in out
    last = out.splitlines()[-1]
    assert last.startswith("chaoskit replay ck1-")
    code, out, _ = shell(*last.split()[1:])
    assert (code, "REPRODUCED" in out) == (1, True), out
    assert "kill@payments.charge#1.applied, with the first item of the input" in out


@pytest.mark.exhaustive
def test_a_campaign_shrinks_what_took_several_kills(shell: Shell) -> None:
    """By default, in the report and in its JSON; not for a single exact kill unless asked for."""
    code, out, _ = shell("run", "broken.py", "--at", TWO, *WINDOWS, "--json", "out.json")
    assert code == 1
    (one,) = json.loads((shell.folder / "out.json").read_text())["shrunk"]
    assert (one["schedule"], one["take"], one["items"]) == (TWO, 1, 4)
    assert one["outcome"] == "REPRODUCED"
    assert one["replay"] in out.splitlines()
    single = ("run", "broken.py", "--at", "payments.charge#1.applied", *WINDOWS)
    shell(*single, "--json", "out.json")
    assert not json.loads((shell.folder / "out.json").read_text())["shrunk"]
    shell(*single, "--shrink", "--json", "out.json")
    (one,) = json.loads((shell.folder / "out.json").read_text())["shrunk"]
    assert (one["smallest"], one["take"]) == ("kill@payments.charge#1.applied", 1)


@pytest.mark.exhaustive
def test_shrinking_what_is_fixed_says_so(shell: Shell) -> None:
    """Nothing to shrink, and the exit code of a replay that finds nothing: 0."""
    code, out, _ = shell("run", "broken.py", "--at", TWO, *WINDOWS, "--no-shrink")
    token = next(line for line in out.splitlines() if line.startswith("chaoskit replay")).split()[2]
    (shell.folder / "broken.py").write_text((shell.folder / "sound.py").read_text())
    code, out, _ = shell("shrink", token)
    assert (code, "nothing to shrink" in out, "FIXED" in out) == (0, True, True), out


def test_a_damaged_token_is_refused(shell: Shell) -> None:
    """As by replay: exit 2."""
    code, _, err = shell("shrink", "ck1-garbage")
    assert (code, "damaged" in err) == (2, True)
