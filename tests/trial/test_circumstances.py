"""What is done to the world before an attempt begins, and how long it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.errors import UsageError
from chaoskit.model.schedule import Schedule, parse_schedule
from chaoskit.model.token import Target
from chaoskit.trial.preludes import covers
from chaoskit.trial.supervisor import Supervisor
from tests.trial.conftest import RunTask
from tests.trial.faulty import charged, ends, no_process_is_left, said, scenario, standing
from tests.trial.traced import with_supervisor

KILLED = "kill@payments.charge#1.applied"


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """After each trial no process of it is left."""
    before = standing()
    yield
    assert no_process_is_left(before)


ASKED = "payments.charge#1"


@pytest.mark.parametrize(
    "fault", [f"late:end@{ASKED}.received", f"commit-late:end@{ASKED} + kill@{ASKED}.applied"]
)
def test_what_is_under_way_arrives_before_the_clock_moves(run_task: RunTask, fault: str) -> None:
    """A request that overtakes another with the same key is done with before the key is forgotten:
    no request travels for a week.
    """
    source = scenario("""
        if not Path("done").exists():
            charge(1, key="k")
            Path("done").touch()
            probe.point("done")
    """)
    overtaken, moved = run_task(source, [f"{fault} / kill@done#1{c}" for c in ("", " / clock:+7d")])
    assert charged(overtaken) == charged(moved) == [(2, "1")]
    assert ends(moved) == ["1 killed 9", "2 killed 9", "3 exit 0"]


# Damage.

FILES = """
for attempt in (1, 2, 3):
    if first(f".{attempt}"):
        break
if attempt == 1:
    Path("sub").mkdir()
    Path("run.json").write_text("0123456789")
    Path("sub/part.json").write_text("abc")
    Path("other.txt").write_text("other")
    charge(1)
if attempt == 2 and os.environ.get("WRITES"):
    Path("run.json").write_text("newer")
    Path("sub/part.json").unlink()
    Path("late.json").write_text("late")
    charge(2)
for path in sorted(p for p in Path(".").rglob("*") if p.is_file() and p.name[0] != "."):
    say(f"{path}={path.read_bytes()!r}")
"""

WHOLE = {"other.txt": "b'other'", "run.json": "b'0123456789'", "sub/part.json": "b'abc'"}


@pytest.mark.parametrize(
    ("damage", "changed"),
    [
        ("torn:run.json", {"run.json": "b'0123456'"}),
        ("torn:sub/part.json", {"sub/part.json": "b'ab'"}),
        ("zero:run.json", {"run.json": repr(bytes(10))}),
        ("empty:*.json", {"run.json": "b''"}),
        ("missing:**/*.json", {"run.json": "", "sub/part.json": ""}),
        ("missing:*/*.json", {"sub/part.json": ""}),
        ("missing:[a-o]*", {"other.txt": ""}),
        ("stale:run.json", {"run.json": ""}),
        ("torn:none.*", {}),
    ],
)
def test_each_damage_is_done_to_the_files_that_it_names(
    run_task: RunTask, damage: str, changed: dict[str, str]
) -> None:
    """And to no other one; a file of which no older copy is known is gone when it is stale."""
    damaged, whole = run_task(scenario(FILES), [f"{KILLED} / damage:{damage}", KILLED])
    left = {name: content for name, content in (WHOLE | changed).items() if content}
    assert dict(line.split("=", 1) for line in said(damaged, 2)) == left
    assert dict(line.split("=", 1) for line in said(whole, 2)) == WHOLE


def test_what_is_stale_is_what_the_attempt_before_has_found(run_task: RunTask) -> None:
    """Its older content, files that it has removed, and none that it has made; the rest stays."""
    text = f"{KILLED} / kill@payments.charge#1.applied / damage:stale:**/*.json"
    (history,) = run_task(scenario(FILES, "env={'WRITES': '1'}"), [text])
    assert dict(line.split("=", 1) for line in said(history, 3)) == WHOLE


def test_what_is_stale_without_a_pattern_for_it_stays(run_task: RunTask) -> None:
    """Only what the pattern covers goes back, in the folder that it names."""
    text = f"{KILLED} / kill@payments.charge#1.applied / damage:stale:[a-z]*"
    (history,) = run_task(scenario(FILES, "env={'WRITES': '1'}"), [text])
    left = {"other.txt": "b'other'", "run.json": "b'0123456789'"}
    assert dict(line.split("=", 1) for line in said(history, 3)) == left


NAMES = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name.strip("."))
PATTERNS = st.lists(
    st.sampled_from(["*", "**", "a*", "*b", "?", "[ab]", "a", ".a", "*.*"]), min_size=1, max_size=3
).filter(lambda parts: parts[-1] != "**")


@given(st.sets(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=6), PATTERNS)
def test_a_pattern_covers_what_a_folder_would_list(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], pattern: list[str]
) -> None:
    """As `pathlib.Path.glob` finds them, asked about names alone."""
    folder = tmp_path_factory.mktemp("files")
    for name in sorted(names):
        file = folder / name
        if not any(parent.is_file() for parent in file.parents) and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    text = "/".join(pattern)
    there = {f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.is_file()}
    found = {f.relative_to(folder).as_posix() for f in folder.glob(text) if f.is_file()}
    assert {name for name in there if covers(text, name)} == found


def test_links_lead_nowhere(run_task: RunTask, tmp_path: Path) -> None:
    """A link in the work folder is not damaged, nor what it leads to elsewhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("whole")
    source = scenario(f"""
        if first():
            Path("link").symlink_to({str(outside / "file")!r})
            Path("folder").symlink_to({str(outside)!r})
            charge(1)
    """)
    run_task(source, [f"{KILLED} / damage:missing:** + damage:empty:**/*"])
    assert (outside / "file").read_text() == "whole"


# Changes.

CHANGES = """
Path("price").write_text("100") if first() else None
say(Path("price").read_text())
say(shop.inputs())
say(os.environ.get("COLOUR", "none"))
charge(1)
"""

DECLARED = """
inputs=lambda seed: [1, 2], changes={
    "world": Change(world=lambda folder, env: (folder / "price").write_text(env["CHAOSKIT_SEED"])),
    "inputs": Change(inputs=lambda seed: {"seed": seed}),
    "env": Change(env={"COLOUR": "red in {state}"}),
    "all": Change(world=lambda f, _: (f / "price").write_text("9"), inputs=lambda _: 7,
                  env={"COLOUR": "blue"}),
    "task": Change(task=lambda: say("another task")),
}
"""

USUAL = ["100", "[1, 2]", "none"]


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ("change:world", ["0", "[1, 2]", "none"]),
        ("change:inputs", ["100", "{'seed': 0}", "none"]),
        ("change:env", ["100", "[1, 2]", "red in …"]),
        ("change:all", ["9", "7", "blue"]),
        ("change:world + change:env", ["0", "[1, 2]", "red in …"]),
        ("change:task", ["another task"]),
    ],
)
def test_a_change_holds_from_its_attempt_on_and_not_in_the_next_trial(
    run_task: RunTask, changes: str, seen: list[str]
) -> None:
    """The attempt before it, the one after it, and a trial without it see what they should."""
    text = f"{KILLED} / {changes} + kill@email.send#1.applied"
    changed, usual = run_task(scenario(CHANGES, DECLARED), [text, KILLED])
    got = said(changed, 2)
    assert [f"{line[:7]}…" if line.startswith("red in /") else line for line in got] == seen
    assert said(changed, 1) == said(usual, 1) == said(usual, 2) == USUAL
    landed = [body.fault for _, body in changed.landed]
    assert landed == [KILLED, *changes.split(" + ")]


STEPS = """
probe.step("bill", "started")
charge(1)
probe.step("bill", "recorded")
if first():
    probe.point("bound")
say(os.environ.get("COLOUR", "none"))
charge(2)
"""


@pytest.mark.parametrize("after", ["payments.charge", "*.charge", "bill"])
def test_a_change_comes_after_its_step_and_not_before(run_task: RunTask, after: str) -> None:
    """An effect is done once it is booked, a step once it is recorded; before that the change does
    not land, and nothing is changed by it.
    """
    declared = f"changes={{'env': Change(env={{'COLOUR': 'red'}}, after={after!r})}}"
    texts = [f"kill@{at} / change:env" for at in ("payments.charge#1.received", "bound#1")]
    early, late = run_task(scenario(STEPS, declared), texts)
    assert said(early, 2) == ["none"]
    assert said(late, 2) == ["red"]
    assert [len(history.landed) for history in (early, late)] == [1, 2]


def test_a_change_stays_for_all_attempts_that_follow(run_task: RunTask) -> None:
    """Also for those that come after a failure of the task's own."""
    source = scenario(
        """
        charge(1) if first("one") else None
        say(os.environ.get("COLOUR", "none"))
        sys.exit(3 if first("two") else 0)
        """,
        "changes={'env': Change(env={'COLOUR': 'red'})}",
    )
    (history,) = run_task(source, [f"{KILLED} / change:env"])
    assert ends(history) == ["1 killed 9", "2 exit 3", "3 exit 0"]
    assert said(history, 2) == said(history, 3) == ["red"]


def test_preludes_are_done_in_their_order(run_task: RunTask) -> None:
    """A change that writes a file and a damage to that file: what comes last holds."""
    declared = "changes={'w': Change(world=lambda f, _: (f / 'a').write_text('xxx'))}"
    source = scenario("charge(1) if first() else say(Path('a').read_text())", declared)
    texts = [f"{KILLED} / change:w + damage:torn:a", f"{KILLED} / damage:torn:a + change:w"]
    torn, whole = run_task(source, texts)
    assert said(torn, 2) == ["xx"]
    assert said(whole, 2) == ["xxx"]


def test_a_command_is_changed_for_another_one(run_task: RunTask, tmp_path: Path) -> None:
    """Its placeholders are filled in, and the next trial has the scenario's own again."""
    file = tmp_path / "commands.py"
    file.write_text(
        "from chaoskit import Change, Scenario\n"
        "other = Change(command=('echo', 'other {seed}'))\n"
        "scenario = Scenario(command=('sh', '-c', 'echo own; exit 1'), attempts_max=1,\n"
        "                    changes={'other': other})\n"
    )

    async def then(supervisor: Supervisor) -> None:
        supervisor.conduct = replace(supervisor.conduct, calls=False)
        changed = await supervisor.run(parse_schedule("change:other"))
        own = await supervisor.run(Schedule())
        assert [said(history, 1) for history in (changed, own)] == [["other 0"], ["own"]]

    with_supervisor(Target(scenario=str(file)), then)


ROWS = """
import os, sqlite3, sys
from chaoskit import Change, Scenario, probe

def path(env):
    return env["CHAOSKIT_DATABASE_URL"].removeprefix("sqlite:///")

def insert(who, env):
    with sqlite3.connect(path(env)) as connection:
        connection.execute("INSERT INTO sales VALUES (?)", (who,))
    connection.close()

def main():
    insert("task", os.environ)
    probe.point("inserted")

scenario = Scenario(
    task=main, services=("database",), tables="CREATE TABLE sales (who TEXT)",
    changes={"rows": Change(world=lambda _, env: insert("somebody else", env))},
)
"""


def test_what_a_change_writes_to_a_database_is_not_the_tasks_doing(run_task: RunTask) -> None:
    """Its rows are there, and no effect of any attempt."""
    (history,) = run_task(ROWS, ["kill@inserted#1 / change:rows"])
    assert [(b.attempt, b.effect.who) for _, b in history.effects] == [(1, "task"), (2, "task")]


def test_a_resume_from_a_copy_knows_nothing_of_the_trial_before(tmp_path: Path) -> None:
    """Clock, inputs, environment and task of the trial before are those of that trial alone."""
    file = tmp_path / "copied.py"
    file.write_text(scenario(CHANGES, DECLARED), encoding="utf-8")
    killed = parse_schedule(KILLED)

    async def then(supervisor: Supervisor) -> None:
        supervisor.conduct = replace(supervisor.conduct, calls=False)
        album = await supervisor.record(killed.attempts[0])
        for text in ("change:all", "change:task", "clock:+7d", "down:9@payments.*#*"):
            await supervisor.run(parse_schedule(f"{KILLED} / {text}"))
            history = await supervisor.resume(album[killed.attempts[0][0]], killed)
            assert said(history, 2) == USUAL, text
            assert history.completed, text

    with_supervisor(Target(scenario=str(file)), then)


# Services that misbehave in one attempt.


def test_a_service_misbehaves_in_one_attempt_only(run_task: RunTask) -> None:
    """It is down for the resume, and up again for the one after that, and in the next trial."""
    text = f"{KILLED} / down:end@payments.*#*"
    down, up = run_task(scenario("charge(1, key='k')"), [text, KILLED])
    assert ends(down) == ["1 killed 9", "2 exit 1", "3 exit 0"]
    assert [b.fault for _, b in down.landed] == text.split(" / ")
    assert ends(up) == ["1 killed 9", "2 exit 0"]


def test_what_the_scenario_says_of_its_services_holds_all_the_time(run_task: RunTask) -> None:
    """A misbehaviour of one attempt comes on top, and takes nothing away."""
    source = scenario(
        """
        for number in (1, 2):
            try:
                charge(number, key=str(number))
            except Exception:
                say("refused")
        """,
        "behaviours=('reject:429@payments.charge#*',)",
    )
    (history,) = run_task(source, ["late-reply:1ms@payments.charge#1 + kill@here#1 / -"])
    assert said(history, 1) == ["refused", "refused"]
    assert charged(history) == []


# What cannot be done.


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("change:worl", "unknown change 'worl'; nearest: world"),
        ("down:1@payment.*#*", "unknown service 'payment'; nearest: payments"),
        ("down:1@payments.chrge#1", "unknown operation 'chrge'; nearest: charge"),
        ("lag:1@database.sales#1", "unknown service 'database'"),
    ],
)
def test_what_is_not_there_is_refused_by_its_name(
    run_task: RunTask, schedule: str, words: str
) -> None:
    """With the nearest names that are."""
    with pytest.raises(UsageError) as refused:
        run_task(scenario(CHANGES, DECLARED), [schedule])
    assert words in str(refused.value)


def test_a_scenario_without_changes_says_so(run_task: RunTask) -> None:
    """There is no nearest name then."""
    with pytest.raises(UsageError, match="change:x: this scenario declares no changes="):
        run_task(scenario("charge(1)"), ["change:x"])


def test_a_database_cannot_misbehave_for_a_while(run_task: RunTask) -> None:
    """A file on the disk has no conduct; the refusal says so before anything is run."""
    with pytest.raises(UsageError, match="the service database cannot misbehave"):
        run_task(ROWS, ["down:1@database.*#*"])
