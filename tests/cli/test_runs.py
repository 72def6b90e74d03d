"""``chaoskit runs``: what a person sees and decides, by the words of the messages themselves."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chaoskit.runtime import Effect, OutcomeUnknown, Tool, open_run, operating

TOOLS = {"mailer": Tool("1.4", "https://mail.example.com")}


class Stopped(BaseException):
    """Stands for a kill: nothing that a task catches."""


def stop(effect: Effect) -> Any:
    """A call during which the process ends."""
    raise Stopped(effect.step)


def runs(*words: object) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of ``chaoskit runs``."""
    done = subprocess.run(
        [sys.executable, "-m", "chaoskit.cli.main", "runs", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a run that was stopped in the step ``mail``."""
    path = tmp_path / "run.db"
    with open_run(path, inputs={"month": 5}, options={"dry": False}, tools=TOOLS) as run:
        run.step("read", lambda _: 1, read_only=True)
        run.step("pay", lambda effect: effect.produced("ch_1"), keyed=True)
        with pytest.raises(Stopped):
            run.step("mail", stop)
    return path


def resume(store: Path, mail: Any = stop) -> Any:
    """Resume it; what the step ``mail`` returned."""
    with open_run(store, inputs={"month": 5}, tools=TOOLS) as run:
        run.step("read", stop, read_only=True)
        run.step("pay", stop, keyed=True)
        return run.step("mail", mail)


def test_a_list_says_what_waits_for_a_person(store: Path) -> None:
    """Each run with its state, what is done, and what is in doubt."""
    code, out, _ = runs("list", store)
    assert code == 0
    assert out.splitlines() == [
        "default: unfinished, nobody has it open",
        "  steps done: 2",
        "  begun, outcome not recorded: mail",
    ]


def test_show_has_every_record(store: Path) -> None:
    """As text for people, and as JSON with the same for programs."""
    code, out, _ = runs("show", store, "default")
    assert code == 0
    for part in ("option dry: false", "tool mailer@1.4 https://mail.example.com", "made ch_1"):
        assert part in out
    code, out, _ = runs("show", "--json", store, "default")
    found = json.loads(out)
    assert [(s["name"], s["state"]) for s in found["steps"]] == [
        *(("read", "done"), ("pay", "done"), ("mail", "begun")),
    ]
    assert found["run"]["options"] == {"dry": False}


@pytest.mark.parametrize("verdict", ["happened", "did-not-happen"])
def test_the_command_of_the_message_settles_the_step(store: Path, verdict: str) -> None:
    """What the task printed can be typed as it is, and the run goes on from there."""
    with pytest.raises(OutcomeUnknown) as caught:
        resume(store)
    said = str(caught.value)
    words = shlex.split(said[said.index("chaoskit runs") : said.index(" (or did-not-happen")])
    assert words[:3] == ["chaoskit", "runs", "settle"]
    result = ["--result", '"m1"'] if verdict == "happened" else []
    assert runs(*words[2:-1], verdict, *result)[0] == 0
    assert resume(store, stop if verdict == "happened" else lambda _: "sent") == (
        "m1" if verdict == "happened" else "sent"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["settle", "default", "mai", "happened"], "steps in doubt: mail"),
        (["settle", "default", "mail", "happened", "--result", "m1"], "takes JSON"),
        (["settle", "default", "mail", "maybe"], "did-not-happen"),
        (["settle", "defalt", "mail", "happened"], "no run 'defalt'; it holds default"),
        (["uncancel", "default"], "is not cancelled"),
        (["release", "default", "--owner-is-dead"], "has no owner"),
        (["release", "default"], "--owner-is-dead"),
        (["show", "may"], "no run 'may'"),
    ],
)
def test_wrong_words_name_the_right_ones(store: Path, words: list[str], says: str) -> None:
    """Exit 2, the fix in the message, and nothing changed."""
    before = operating.view(store, "default")
    code, _, err = runs(words[0], store, *words[1:])
    assert code == 2
    assert says in err
    assert operating.view(store, "default") == before


def test_a_missing_store_is_not_made(tmp_path: Path) -> None:
    """A typing error in the path is an error, and leaves no file."""
    code, _, err = runs("list", tmp_path / "rnu.db")
    assert code == 2
    assert "no store of runs at" in err
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_is_refused_with_its_code(store: Path) -> None:
    """What the runtime refuses ends with its exit code, 75."""
    store.write_bytes(b"\0" * 100)
    code, _, err = runs("list", store)
    assert (code, "is damaged" in err) == (75, True)


def test_cancel_and_uncancel(store: Path) -> None:
    """Cancelled with its reason in the list, and back."""
    assert runs("cancel", store, "default", "--reason", "wrong month")[0] == 0
    assert "cancelled (wrong month)" in runs("list", store)[1]
    assert runs("uncancel", store, "default")[0] == 0
    assert "cancelled" not in runs("list", store)[1]


def test_release_takes_the_run_from_a_live_owner_only_on_a_persons_word(store: Path) -> None:
    """The owner is named; after the release it is fenced, and the run has no owner."""
    with open_run(store, inputs={"month": 5}, tools=TOOLS) as run:
        token = run.token
        assert f"last opened by process {os.getpid()} on host" in runs("list", store)[1]
        code, _, err = runs("settle", store, "default", "mail", "happened")
        assert (code, f"belongs to process {os.getpid()}" in err) == (75, True)
        assert runs("release", store, "default", "--owner-is-dead")[0] == 0
    found = operating.view(store, "default").run
    assert (found.owner, found.token) == (None, token + 1)


def test_tools_answer_whether_one_may_go(store: Path, tmp_path: Path) -> None:
    """No, with the runs that need it, exit 1; yes, exit 0; over several stores."""
    other = tmp_path / "other.db"
    with open_run(other, inputs=None, tools={"mailer": Tool("1.3")}) as run:
        run.finish()
    open_run(other, inputs=None, run_id="june", tools={"mailer": Tool("1.3")}).close()
    code, out, _ = runs("tools", store, other)
    assert code == 0
    assert out.splitlines() == [
        f"  mailer@1.3: run june in {other}",
        f"  mailer@1.4 https://mail.example.com: run default in {store}",
    ]
    code, out, _ = runs("tools", store, other, "--may-remove", "mailer@1.3")
    assert code == 1
    assert out.startswith("no: 1 unfinished runs refer to mailer@1.3\n")
    assert f"run june in {other}" in out
    assert runs("tools", store, other, "--may-remove", "mailer@1.2")[0] == 0
    assert runs("tools", store, "--may-remove", "mailer")[0] == 2


def test_advice_reads_the_runs_own_figures(store: Path) -> None:
    """What was spent by kind, what a commit took, and a sentence for each kind."""
    code, out, _ = runs("advise", store)
    assert code == 0
    assert out.count("a kill costs") >= 2
    assert "a commit took" in out
