"""Amounts of money in effects: where a field says how much, and another one of what."""

from __future__ import annotations

from collections.abc import Mapping

from chaoskit.model.effects import Effect
from chaoskit.model.money import money


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
    return ", ".join(
        money(amount, currency, grouped=True) for currency, amount in sorted(totals.items())
    )
