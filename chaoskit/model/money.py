"""Amounts of money in words. Stripe counts each currency in its smallest unit."""

from __future__ import annotations

ZERO_DECIMAL = frozenset(
    "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split()  # noqa: SIM905
)
"""Currencies without a smaller unit (Stripe docs, Currencies, Zero-decimal currencies).

UGX has none either, but Stripe goes on counting it in hundredths.
"""

THREE_DECIMAL = frozenset({"bhd", "jod", "kwd", "omr", "tnd"})
"""Currencies counted in thousandths (same page, Three-decimal currencies)."""


def money(amount: int, currency: str, *, grouped: bool = False) -> str:
    """``amount`` smallest units of ``currency`` as people write it: ``42.00 EUR``, ``42 JPY``.

    Args:
        amount: not negative.
        currency: three letters, in any case.
        grouped: with a comma between thousands.
    """
    name = currency.lower()
    digits = 0 if name in ZERO_DECIMAL else 3 if name in THREE_DECIMAL else 2
    whole, part = divmod(amount, 10**digits)
    shown = f"{whole:,}" if grouped else str(whole)
    return f"{shown}.{part:0{digits}d} {name.upper()}" if digits else f"{shown} {name.upper()}"
