"""Amounts of money in effects: where a field says how much, and another one of what."""

from __future__ import annotations

from collections.abc import Mapping

from chaoskit.model.effects import Effect

ZERO_DECIMAL = frozenset(
    "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split()  # noqa: SIM905
)
"""Currencies without a smaller unit (Stripe docs, Currencies, Zero-decimal currencies)."""

THREE_DECIMAL = frozenset({"bhd", "jod", "kwd", "omr", "tnd"})
"""Currencies counted in thousandths (same page, Three-decimal currencies)."""


def amount_of(effect: Effect) -> tuple[str, int] | None:
    """The currency of an effect, in capitals, and how many of its smallest units it moves.

    None where it has no whole ``amount``, or no ``currency`` of three letters.
    """
    fields = dict(effect.fields)
    amount, currency = fields.get("amount", ""), fields.get("currency", "")
    if not (amount.isascii() and amount.isdigit() and len(amount) <= 15):
        return None
    if not (currency.isascii() and currency.isalpha() and len(currency) == 3):
        return None
    return currency.upper(), int(amount)


def in_words(totals: Mapping[str, int]) -> str:
    """Amounts by currency as people write them: ``42.00 EUR, 10 JPY``; empty for none."""
    return ", ".join(_money(amount, currency) for currency, amount in sorted(totals.items()))


def _money(amount: int, currency: str) -> str:
    name = currency.lower()
    digits = 0 if name in ZERO_DECIMAL else 3 if name in THREE_DECIMAL else 2
    whole, part = divmod(amount, 10**digits)
    return f"{whole:,}.{part:0{digits}d} {currency}" if digits else f"{whole:,} {currency}"
