"""The address of a PostgreSQL store: no password is shown, and nothing else is taken for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.runtime import Misuse, StoreUnavailable, open_run
from chaoskit.runtime.store_postgres_session import without_passwords


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@h/d",
        "postgresql://me:s3%63ret@h/d?password=s3cret",
        "postgresql://me@h/d?password=s3cret&sslmode=disable",
        "postgresql://h/d?sslpassword=s3cret",
        "postgresql:///d?password=s3cret",
    ],
)
def test_no_password_is_shown(url: str) -> None:
    """Neither in the place nor in what is known of it, and all else of the address stays."""
    place, secrets = without_passwords(url)
    assert "s3" not in place
    assert "s3cret" in secrets
    assert place.startswith("postgresql://")
    assert place.split("?")[0].endswith("/d")
    assert ("sslmode=disable" in place) is ("sslmode" in url)


def test_a_refusal_shows_no_password(tmp_path: Path) -> None:
    """Not where the server cannot be reached, and not where libpq quotes the address."""
    with pytest.raises(StoreUnavailable) as caught:
        open_run(f"postgresql://me:s3cret@/d?host={tmp_path}", inputs=None)
    assert "s3cret" not in str(caught.value)
    for wrong in ("h/d?seven=7", "[h/d", "h/d?host=%zz"):
        with pytest.raises(Misuse, match=r"the address .*cannot be read") as misuse:
            open_run(f"postgresql://me:s3cret@{wrong}", inputs=None)
        assert "s3cret" not in str(misuse.value)
        assert misuse.value.__cause__ is None


def test_a_url_that_a_path_has_shortened_is_a_misuse() -> None:
    """It is not taken for a file of that name."""
    with pytest.raises(Misuse, match="give it as a text"):
        open_run(Path("postgresql://h/d"), inputs=None)


def test_without_psycopg_the_message_says_what_to_install() -> None:
    """The extra is asked for by the name under which it is installed."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from chaoskit.runtime import Misuse, open_run\n"
        "try:\n    open_run('postgresql://x/y', inputs=None)\n"
        "except Misuse as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install chaoskit[postgres]" in done.stdout
