"""The built wheel in an empty environment: it runs a scenario, serves, and shows its plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment in which only the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    assert names - {n for n in names if n.endswith(".dist-info")} == {"chaoskit", "fake_services"}
    home = folder / "venv"
    uv = shutil.which("uv")
    if uv:
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(home)], check=True)
        install = [uv, "pip", "install", "-q", "--python", str(home / "bin/python"), str(wheel)]
    else:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        install = [str(home / "bin/python"), "-m", "pip", "install", "-q", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return home / "bin"


def run(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program of that environment, with nothing of ours on its path."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [str(installed / words[0]), *words[1:]],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_wheel_works_alone(installed: Path, tmp_path: Path) -> None:
    """A scenario by path is judged, and pytest's header shows the plugin."""
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    broken = "scenarios/broken/record_after_effect.py"
    done = run(installed, tmp_path, "chaoskit", "run", broken, "--max-points", "4", "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "duplicate_effect" in done.stdout
    done = run(installed, tmp_path, "python", "-m", "fake_services", "--help")
    assert done.returncode == 0, done.stderr
    asks = "from fake_services.page.document import document; print(len(document('t', 'h')[0]))"
    done = run(installed, tmp_path, "python", "-c", asks)
    assert done.returncode == 0, done.stderr
    (tmp_path / "test_nothing.py").write_text("def test_it():\n    pass\n", encoding="utf-8")
    done = run(installed, tmp_path, "python", "-m", "pytest", "test_nothing.py")
    assert done.returncode == 0, done.stdout
    assert "chaoskit: --chaos-seed=0" in done.stdout
