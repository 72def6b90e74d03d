"""The payments service: a Stripe-compatible subset with Stripe's rules for idempotency keys."""
