"""Fake email, payment and database services that speak real protocols and keep their own books.

They import `chaoskit.model` and nothing else of chaoskit. ``python -m fake_services`` serves them
alone.
"""
