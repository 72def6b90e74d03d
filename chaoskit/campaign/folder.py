"""The folder of all runs: where a campaign is begun, found again and gone on with."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from chaoskit.campaign.store import FILE, Store
from chaoskit.model.errors import UsageError, naming, unknown_name

LATEST = "latest"
"""The name of the link to the newest run."""


def identity(*parts: bytes) -> str:
    """What makes two campaigns the same one: a digest of target, options and scenario file."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def open_campaign(root: Path, slug: str, campaign: str, *, fresh: bool) -> tuple[Store, bool]:
    """The unfinished campaign of this identity under ``root``, or a new one.

    Returns:
        The store, and whether it goes on with an interrupted campaign.
    """
    with naming(root, "cannot be made"):
        root.mkdir(parents=True, exist_ok=True)
    if not fresh:
        for folder in sorted(_runs(root), reverse=True):
            with suppress(UsageError):
                if not _waits(folder, campaign):
                    continue
                store = Store(folder, writable=True)
                if store.get("finished") is None:
                    _link_latest(root, folder)
                    return store, True
                store.close()
    folder = _new_folder(root, slug, campaign)
    try:
        store = Store(folder, writable=True)
        with store.telling():
            store.put("identity", campaign)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # there is nothing in it yet
        raise
    _link_latest(root, folder)
    return store, False


def discard(store: Store) -> None:
    """Close a campaign and remove its folder; the newest of the others is the latest."""
    store.close()
    shutil.rmtree(store.folder, ignore_errors=True)
    root = store.folder.parent
    latest = root / LATEST
    if latest.is_symlink() and not latest.exists():
        others = _runs(root)
        if others:
            _link_latest(root, max(others))
        else:
            latest.unlink(missing_ok=True)  # another one may have done it


def _waits(folder: Path, campaign: str) -> bool:
    """Whether it is this campaign, and has not ended.

    No lock is taken for that: who goes on with another one just now would find it held.
    """
    with Store(folder) as store:
        return store.get("identity") == campaign and store.get("finished") is None


def find_run(root: Path, name: str) -> Path:
    """The folder of the run that ``name`` names: a path, a name under ``root``, or ``latest``.

    Raises:
        UsageError: there is no such run.
    """
    for folder in (Path(name), root / name):
        if os.path.isfile(folder / FILE):
            return folder.resolve()
        if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK):
            raise UsageError(f"{folder} cannot be read: permission denied")
    latest = [LATEST] if os.path.isfile(root / LATEST / FILE) else []
    raise unknown_name("run", name, [folder.name for folder in _runs(root)] + latest)


def _runs(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    with naming(root, "cannot be read"):
        return [f for f in root.iterdir() if not f.is_symlink() and os.path.isfile(f / FILE)]


def _new_folder(root: Path, slug: str, campaign: str) -> Path:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", slug)[:40].strip("-")
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        folder = root / f"{moment}-{name}-{campaign[:4]}{suffix}"
        with naming(root, "cannot be written to"), suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise UsageError(f"{root} already holds a thousand runs of this second")


def _link_latest(root: Path, folder: Path) -> None:
    link = root / LATEST
    fresh = root / f".{LATEST}-{os.getpid()}"
    with suppress(OSError):  # a file system without links: the name is a convenience
        fresh.symlink_to(folder.name)
        fresh.replace(link)
