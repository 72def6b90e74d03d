"""Broken scenarios, what their diagnosis says is missing, and its cure in their source."""

from __future__ import annotations

from typing import NamedTuple

from chaoskit.checkers import blocked, diagnosis, losses, redos


class Cure(NamedTuple):
    """``changes``: old and new texts of the source of ``scenario``; each old one is there once."""

    scenario: str
    missing: str
    changes: tuple[tuple[str, str], ...]


KEYED = (
    "services.charge(buyers[number])",
    'services.charge(buyers[number], key=f"order-{number}")',
)
"""The key is derived from the step, so that it need not be stored."""

CURES = (
    Cure("record_after_effect", diagnosis.ORDER, (KEYED,)),
    Cure("fresh_key", diagnosis.FRESH_KEY, (("str(uuid.uuid4())", 'f"order-{number}"'),)),
    Cure("look_up_too_soon", diagnosis.IN_FLIGHT, (("reference=order)", "order, order)"),)),
    Cure(
        "coarse_key",
        losses.COARSE_KEY,
        (("json.dumps(customer, sort_keys=True)", "json.dumps([number, customer])"),),
    ),
    Cure(
        "last_one_again",
        redos.RECORD_IGNORED,
        (
            ('min(checkpoint.values.get("done", 0), len(buyers) - 1)', "checkpoint.values"),
            ("range(begin,", 'range(begin.get("done", 0),'),
        ),
    ),
    Cure("asked_twice", redos.TWICE_HERE, (("if doubtful is not None:", "if False:"),)),
    Cure(
        "record_before_effect",
        losses.EARLY_RECORD,
        (
            (
                "checkpoint.save(done=number + 1)  # a kill after this line loses the charge",
                "pass",
            ),
            (
                "services.charge(buyers[number])\n",
                f"{KEYED[1]}\n        checkpoint.save(done=number + 1)\n",
            ),
        ),
    ),
    Cure(
        "lagging_record",
        redos.UNRECORDED,
        (("if number == 0 or number % EVERY == 0:", "if True:"),),
    ),
    Cure(
        "done_before_the_end",
        losses.NOTHING_DONE,
        (
            (
                'checkpoint.values.get("done", 0) == len(buyers)',
                '"mailed" in checkpoint.values',
            ),
            (', key="month")', ', key="month")\n    checkpoint.save(mailed=True)'),
        ),
    ),
    Cure(
        "torn_checkpoint",
        blocked.UNREADABLE,
        (
            ('file.open("w", encoding="utf-8") as', 'file.with_suffix(".new").open("w") as'),
            ("checkpoint)\n", 'checkpoint)\n        file.with_suffix(".new").replace(file)\n'),
        ),
    ),
    Cure(
        "bound_by_arrival",
        diagnosis.BINDING,
        (
            ("list(offers.values())", "offers"),
            (
                'dict(zip(emails, checkpoint.values["offers"], strict=True))',
                'checkpoint.values["offers"]',
            ),
        ),
    ),
    Cure(
        "tries_again_at_once",
        diagnosis.RETRY,
        (
            (f"try:\n            {KEYED[0]}", f"try:\n            {KEYED[1]}"),
            (f"shop.Shop()\n            {KEYED[0]}", f"shop.Shop()\n            {KEYED[1]}"),
        ),
    ),
    Cure(
        "cancel_forgotten",
        diagnosis.CANCEL_LOST,
        (('(shop.STATE / "cancel").unlink(missing_ok=True)  # of an earlier life', "pass"),),
    ),
    Cure(
        "whole_file_hash",
        diagnosis.TOO_STRICT,
        (("source.encode()", 'source.partition("  #")[0].encode()'),),
    ),
    Cure("refuses_its_own_trace", blocked.REFUSES_A_KILL, (("if mark.exists():", "if False:"),)),
    Cure(
        "stale_lock",
        blocked.STALE_LOCK,
        (
            (
                'if lock.exists():\n        sys.exit("another run holds the lock")',
                "held = lock.open('a')\n    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            ),
            ("    lock.touch()\n", ""),
            ("import sys", "import fcntl"),
        ),
    ),
    Cure(
        "reloaded_in_two",
        losses.HALF_REPLACED,
        (
            (
                '        with books:\n            books.execute("INSERT',
                '            books.execute("INSERT',
            ),
            (
                '        probe.point("balance.deleted")',
                '            probe.point("balance.deleted")',
            ),
        ),
    ),
    Cure("late_notice", diagnosis.LATE_RETRY, (("fresh + rescued", "rescued + fresh"),)),
    Cure(
        "stale_approval",
        diagnosis.UNVERIFIED,
        (
            (
                'if "paid" not in checkpoint.values:  # is it still the price?\n',
                (
                    'if "paid" not in checkpoint.values:\n'
                    '        now = json.loads((shop.STATE / "price.json").read_text())["cents"]\n'
                    '        if now != checkpoint.values["approved"]:\n'
                    '            probe.refused("the price has changed")\n'
                    "            raise SystemExit(1)\n"
                ),
            ),
        ),
    ),
    Cure(
        "half_applied",
        "success is claimed over files that are not those of an undisturbed run (class HALF)",
        (
            (
                'with file.open("w", encoding="utf-8") as report:',
                (
                    'beside = file.with_suffix(".new")\n'
                    '        with beside.open("w", encoding="utf-8") as report:'
                ),
            ),
            (
                'probe.point("chunk.written")\n',
                'probe.point("chunk.written")\n        beside.replace(file)\n',
            ),
        ),
    ),
)
