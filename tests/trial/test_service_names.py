"""Services by the names that people look for."""

from __future__ import annotations

import pytest

from chaoskit.model.errors import UsageError
from chaoskit.trial.services import create_services, unknown_service


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("stripe", "payments"),
        ("Stripe", "payments"),
        ("smtp", "email"),
        ("mail", "email"),
        ("pg", "postgres"),
        ("postgresql", "postgres"),
        ("sqlite", "database"),
        ("paymnts", "payments"),
    ],
)
def test_another_name_of_a_service_suggests_it(name: str, meant: str) -> None:
    """What it imitates, or how it is spoken to, is answered with the service's own name."""
    with pytest.raises(UsageError) as refused:
        create_services([name])
    assert f"unknown service '{name}'; nearest: {meant}" in str(refused.value)


def test_a_service_that_is_not_installed_is_not_suggested() -> None:
    """Only valid names are."""
    assert str(unknown_service("stripe", ["email"])) == "unknown service 'stripe'; nearest: email"
