"""A PostgreSQL server of its own, which books every change of a row in the transaction that makes
it, behind a proxy that sees each commit.
"""
