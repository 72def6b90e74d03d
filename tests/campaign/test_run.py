"""Campaigns on real tasks: what is found, what is refused, what survives a kill of the campaign."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from chaoskit.campaign import run as campaign_run
from chaoskit.campaign.events import Finished, Started, Surveyed, Surveying, TrialDone
from chaoskit.campaign.folder import find_run
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.errors import UsageError
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi

ROOT = Path(__file__).resolve().parents[2]
BROKEN = ROOT / "scenarios" / "broken"
CAMPAIGN_ENDS_WITHIN_S = 300


def scenario(name: str) -> Target:
    """A scenario of the project."""
    return Target(scenario=str(ROOT / "scenarios" / f"{name}.py"))


def campaign(tmp_path: Path, target: Target, **options: object) -> Summary:
    """Run a whole campaign without late landings; its summary."""
    runs = str(tmp_path / "runs")
    chosen = Options(target=target, runs=runs, in_flight=(), **options)  # type: ignore[arg-type]
    last = [event for event in run(chosen) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        return summarize(store)


def findings(summary: Summary) -> list[tuple[str, str, str]]:
    """What was found, without what differs from run to run."""
    return [(f.kind, f.schedule, f.fingerprint) for f in summary.findings]


def test_the_textbook_fault_is_found_at_exactly_its_window(tmp_path: Path) -> None:
    """record_after_effect duplicates at applied and answered of each charge, and nowhere else."""
    summary = campaign(tmp_path, scenario("broken/record_after_effect"), jobs=2)
    assert summary.verdict == "INVALID"
    assert summary.points.total == summary.points.landed == 36
    wanted = {f"payments.charge#{n}.{w}" for n in range(1, 13) for w in ("applied", "answered")}
    assert {f.point for f in summary.findings} == wanted
    assert {f.kind for f in summary.findings} == {"duplicate_effect"}


@pytest.mark.exhaustive
def test_any_number_of_workers_gives_the_same_findings(tmp_path: Path) -> None:
    """-j 1 and -j 2 with the same seed find the same, in the same order."""
    target = scenario("broken/no_effect_ids")
    one = campaign(tmp_path / "1", target, jobs=1, max_points=15, seed=7, depth=2)
    two = campaign(tmp_path / "2", target, jobs=2, max_points=15, seed=7, depth=2)
    assert one.trials == two.trials == 30
    assert findings(one) == findings(two)
    assert findings(one)


def test_further_kills_land_during_the_resume(tmp_path: Path) -> None:
    """Depth 2 kills every sampled trial once more, in its second attempt."""
    summary = campaign(
        tmp_path, scenario("broken/record_after_effect"), jobs=2, max_points=10, depth=2
    )
    assert summary.trials == 20
    assert summary.kills == 30
    assert any(" / " in f.schedule for f in summary.findings)


def test_a_limit_of_trials_bounds_all_waves_together(tmp_path: Path) -> None:
    """Exactly so many trials for any number of workers, the last wave a sample; and it is said."""
    target = scenario("broken/no_effect_ids")
    one = campaign(tmp_path / "1", target, jobs=1, max_points=8, max_trials=11, depth=2)
    two = campaign(tmp_path / "2", target, jobs=2, max_points=8, max_trials=11, depth=2)
    assert one.trials == two.trials == 11
    assert one.kills == two.kills == 14
    assert findings(one) == findings(two)
    assert "what was left when the limit of 11 trials was reached" in one.not_tested


def test_a_task_that_never_calls_a_service_is_unknown(tmp_path: Path) -> None:
    """Without an effect and without outputs there is nothing to judge by."""
    summary = campaign(tmp_path, Target(command=CommandSpec(command=("true",))))
    assert summary.verdict == "UNKNOWN"
    assert "nothing to judge by" in " ".join(summary.unknowns)


def test_a_survey_that_does_not_repeat_is_unknown(tmp_path: Path) -> None:
    """A task whose effects differ by more than volatile fields gets no verdict."""
    counter = tmp_path / "counter"
    script = (
        f"echo x >> {counter}; for i in $(cat {counter}); do curl -sS -u sk_test_x: "
        "{payments.url}/v1/charges -d amount=100 -d currency=eur -d source=tok_visa; done"
    )
    spec = CommandSpec(command=("bash", "-c", script), services=("payments",))
    summary = campaign(tmp_path, Target(command=spec))
    assert summary.verdict == "UNKNOWN"
    assert "do not have the same effects" in " ".join(summary.unknowns)
    assert summary.trials == 0


def test_a_task_that_fails_by_itself_is_unknown(tmp_path: Path) -> None:
    """A task that does not work undisturbed cannot be judged."""
    spec = CommandSpec(command=("sh", "-c", "echo out of cheese; exit 3"), services=("payments",))
    summary = campaign(tmp_path, Target(command=spec))
    assert summary.verdict == "UNKNOWN"
    assert "status 3 (out of cheese)" in " ".join(summary.unknowns)


def test_a_task_without_a_point_is_an_error(tmp_path: Path) -> None:
    """Zero points are a usage error that names the way out, never a pass."""
    spec = CommandSpec(command=("touch", "out"), outputs=("out",))
    with pytest.raises(UsageError, match="--times"):
        campaign(tmp_path, Target(command=spec))
    assert not list((tmp_path / "runs").glob("*/"))


def test_times_are_enough_for_a_task_without_points(tmp_path: Path) -> None:
    """Random moments test a program that nothing can be seen of but its outputs.

    They are so many because runs take longer at one time than at another: not all come too late.
    """
    script = "for i in $(seq 10); do echo $i >> lines; sleep 0.02; done"
    spec = CommandSpec(command=("sh", "-c", script), outputs=("lines",))
    summary = campaign(tmp_path, Target(command=spec), times=24, jobs=2)
    assert summary.trials == 24
    assert {f.kind for f in summary.findings} == {"diverged_state"}
    assert summary.mechanisms == ("windows", "crossings", "times")


def test_the_time_limit_stops_and_says_what_was_left(tmp_path: Path) -> None:
    """A campaign that runs out of time says so; what it has is judged."""
    target = scenario("broken/no_effect_ids")
    summary = campaign(tmp_path, target, max_time_s=0.0)
    assert summary.trials == 0
    assert summary.verdict == "UNKNOWN"
    assert any("time limit" in line for line in summary.not_tested)


def test_one_point_can_be_chosen(tmp_path: Path) -> None:
    """--at runs one schedule; an unknown point names the nearest."""
    target = scenario("broken/record_after_effect")
    only = campaign(tmp_path, target, only=("kill@payments.charge#5.applied",))
    assert [f.point for f in only.findings] == ["payments.charge#5.applied"]
    with pytest.raises(UsageError, match=r"payments\.charge#9\.applied"):
        campaign(tmp_path, target, only=("kill@payments.charge#99.applied",))


@pytest.mark.exhaustive
def test_the_first_process_alone_is_killed_where_nobody_knows_of_others(tmp_path: Path) -> None:
    """Without system calls nothing tells how many there are; with them a lone one is refused."""
    target = scenario("broken/acked_by_parent")
    summary = campaign(tmp_path, target, mechanisms=("windows",), kill="leader", max_points=2)
    assert summary.kills == summary.trials == 2
    if this_abi() is not None:
        alone = scenario("broken/record_before_effect")
        with pytest.raises(UsageError, match="one process only"):
            campaign(tmp_path, alone, mechanisms=("calls", "windows"), kill="leader")


def test_any_executor_will_do(tmp_path: Path) -> None:
    """A campaign on a plain concurrent.futures executor finds what local workers find."""
    options = Options(
        target=scenario("broken/fresh_key"),
        runs=str(tmp_path / "runs"),
        max_points=6,
        in_flight=(),
    )
    last = [event for event in run(options, Inline()) if isinstance(event, Finished)][-1]
    with Store(last.folder) as store:
        inline = summarize(store)
    local = campaign(tmp_path / "local", scenario("broken/fresh_key"), max_points=6)
    assert findings(inline) == findings(local)


def test_undisturbed_runs_that_take_long_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks at a silent terminal for minutes: it is said for how long they have run."""
    monkeypatch.setattr(campaign_run, "SILENT_S", 0.01)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    spec = CommandSpec(command=("cp", str(gate), "a"), outputs=("a",))
    options = Options(target=Target(command=spec), runs=str(tmp_path / "runs"), times=1)
    told = []
    for event in run(options):
        told.append(event)
        if isinstance(event, Surveying):
            with suppress(OSError), open(os.open(gate, os.O_WRONLY | os.O_NONBLOCK), "wb") as file:
                file.write(b"go on")
        if isinstance(event, Surveyed):
            break
    waited = [event.seconds for event in told if isinstance(event, Surveying)]
    assert waited
    assert waited == sorted(waited)


def test_leaving_the_stream_early_keeps_what_is_finished(tmp_path: Path) -> None:
    """A campaign that its listener stops goes on later without repeating a trial."""
    options = Options(
        target=scenario("broken/no_effect_ids"),
        runs=str(tmp_path / "runs"),
        max_points=12,
        in_flight=(),
        snapshots=False,
    )
    stream = run(options)
    seen = []
    for event in stream:
        if isinstance(event, TrialDone):
            seen.append(event.trial.schedule)
        if len(seen) == 4:
            break
    stream.close()  # type: ignore[attr-defined]
    again = list(run(options))
    assert isinstance(again[0], Started)
    assert again[0].resumed
    assert again[0].trials >= 4
    fresh = [event.trial.schedule for event in again if isinstance(event, TrialDone)]
    assert not set(fresh) & set(seen)
    assert len(fresh) + again[0].trials == 12 + 1  # and the control


GATED = """
import sys
from dataclasses import replace

sys.path[:0] = [{broken!r}, {scenarios!r}]
import no_effect_ids


def main():
    with open({came!r}, "ab", buffering=0) as came:
        came.write(b"x")
        number = came.tell()
    if number > {passing}:
        open({gate!r}, "rb").read()
    no_effect_ids.main()


scenario = replace(no_effect_ids.scenario, task=main)
"""
PASSING = 16
"""Attempts that are not stopped at the gate: two surveys, and those of some trials."""


class Halfway:
    """A campaign of two workers in a process of its own, which cannot end: its attempts stop at a
    gate once some trials are there.
    """

    def __init__(self, folder: Path) -> None:
        self.runs, self.work = folder / "runs", folder / "work"
        self._gate, self._came = folder / "gate", folder / "came"
        self.work.mkdir()
        os.mkfifo(self._gate)
        text = GATED.format(
            broken=str(BROKEN),
            scenarios=str(BROKEN.parent),
            came=str(self._came),
            gate=str(self._gate),
            passing=PASSING,
        )
        (folder / "gated.py").write_text(text, encoding="utf-8")
        self.command = [
            sys.executable, "-m", "chaoskit.cli.main", "run", str(folder / "gated.py"),
            "--runs", str(self.runs), "-j", "2", "--work-dir", str(self.work),
            "--mechanisms", "windows", "--in-flight", "landed", "--no-snapshots",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            self.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            start_new_session=True,
        )

    def family(self) -> list[psutil.Process]:
        """Every process that it has started, once both workers stand at the gate."""
        _until(self._is_halfway)
        found = psutil.Process(self.process.pid).children(recursive=True)
        assert len(found) >= 6, "two workers, with a launcher and a task each"
        return found

    def _is_halfway(self) -> bool:
        came = self._came.stat().st_size if self._came.exists() else 0
        return came >= PASSING + 2 and _trials(self.runs) > 3

    def open_the_gate(self) -> None:
        """No attempt is stopped any more."""
        self._gate.unlink()
        self._gate.touch()

    def assert_gone(self, family: list[psutil.Process]) -> None:
        """Neither a process nor a work folder is left."""
        _, alive = psutil.wait_procs(family, CAMPAIGN_ENDS_WITHIN_S)
        assert not alive, f"still alive after the campaign was ended: {alive}"
        _until(lambda: not list(self.work.iterdir()))


@pytest.fixture
def halfway(tmp_path: Path) -> Iterator[Halfway]:
    """One that has begun; it is gone at the end."""
    begun = Halfway(tmp_path)
    with begun.process:
        yield begun
        begun.process.kill()


def test_ctrl_c_ends_a_campaign_that_can_be_gone_on_with(halfway: Halfway) -> None:
    """SIGINT: exit 130, no process and no work folder is left, and what is finished is kept."""
    family = halfway.family()
    halfway.process.send_signal(signal.SIGINT)
    said, _ = halfway.process.communicate(timeout=CAMPAIGN_ENDS_WITHIN_S)
    assert halfway.process.returncode == 130
    assert b"goes on when the same command is given again" in said
    halfway.assert_gone(family)
    assert _trials(halfway.runs) > 3


def _trials(runs: Path) -> int:
    try:
        with Store(find_run(runs, "latest")) as store:
            return len(store.known())
    except UsageError:
        return 0


def _until(condition: object) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + CAMPAIGN_ENDS_WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        threading.Event().wait(0.01)
    return True


def test_a_campaign_that_was_sigkilled_goes_on(halfway: Halfway) -> None:
    """No process survives it, no work folder either, and the same command finishes the rest."""
    family = halfway.family()
    halfway.process.kill()
    halfway.process.communicate()
    halfway.assert_gone(family)
    halfway.open_the_gate()
    before = _trials(halfway.runs)
    done = subprocess.run(halfway.command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{before} trials are there" in done.stdout
    assert len(list(halfway.runs.glob("2*"))) == 1
    with Store(find_run(halfway.runs, "latest")) as store:
        summary = summarize(store)
    assert summary.points.total == summary.points.tested == 36


def test_nothing_of_a_campaign_stays_in_the_work_root(tmp_path: Path) -> None:
    """Every work folder of a campaign is gone when it is over."""
    work = tmp_path / "work"
    work.mkdir()
    campaign(
        tmp_path, scenario("broken/record_after_effect"), jobs=2, max_points=4, work_root=str(work)
    )
    assert not list(work.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="started by nohup: not to be ended"
)
def test_a_signal_to_the_whole_group_leaves_nothing(
    halfway: Halfway, number: signal.Signals
) -> None:
    """What a closed terminal or a CI system sends to a group ends in no process and no folder."""
    family = halfway.family()
    os.killpg(halfway.process.pid, number)
    halfway.process.communicate(timeout=CAMPAIGN_ENDS_WITHIN_S)
    halfway.assert_gone(family)


def test_a_campaign_is_not_gone_on_with_once_the_task_has_changed(tmp_path: Path) -> None:
    """A helper module of the scenario's, or the script of a command, is part of its identity."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    for name in ("_shop.py", "broken/fresh_key.py"):
        (folder / Path(name).name).write_text((ROOT / "scenarios" / name).read_text())
    options = Options(
        target=Target(scenario=str(folder / "fresh_key.py")), runs=str(tmp_path / "runs")
    )
    assert not _started(options).resumed
    assert _started(options).resumed
    (folder / "_shop.py").write_text((folder / "_shop.py").read_text() + "# changed\n")
    assert not _started(options).resumed


def _started(options: Options) -> Started:
    """The first event of a campaign that is left at once, in a process without its modules."""
    code = (
        "import sys, msgspec; from chaoskit.campaign.options import Options; "
        "from chaoskit.campaign.run import run; "
        "stream = run(msgspec.json.decode(sys.argv[1], type=Options)); "
        "event = next(stream); next(stream); stream.close(); print(event.resumed)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, msgspec.json.encode(options).decode()],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return Started(Path(), "", done.stdout.strip() == "True", 0)


def test_a_value_that_varies_by_the_minute_is_no_finding(tmp_path: Path) -> None:
    """What both surveys had in common and later runs have not is looked at again first."""
    clock = tmp_path / "clock"
    script = (
        f"n=$(cat {clock} 2>/dev/null || echo 0); echo $((n + 1)) > {clock}; "
        "[ $n -lt 2 ] && t=10:00 || t=10:0$((n % 7)); "
        "[ -e done ] || curl -sS --fail -H 'Idempotency-Key: k' {email.url}/v1/messages -d "
        '"{\\"from\\":\\"a@b.c\\",\\"to\\":\\"d@e.f\\",\\"subject\\":\\"at $t\\"}"; : > done'
    )
    spec = CommandSpec(command=("bash", "-c", script), services=("email",))
    summary = campaign(tmp_path, Target(command=spec), jobs=1)
    assert summary.volatile == {"email.send": ("subject",)}
    assert "wrong_inputs" not in summary.kinds
