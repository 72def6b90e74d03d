#!/usr/bin/env bash
# Charges three customers with curl. The record is a file; the key is stored before the effect.
# usage: task.sh PAYMENTS_URL [naive]
set -eu
url=$1
mode=${2:-keyed}
for n in 1 2 3; do
  [ -e "done-$n" ] && continue
  key="order-$n"
  [ "$mode" = naive ] && key="$$-$n"
  curl -sS --fail -u sk_test_bash: -H "Idempotency-Key: $key" "$url/v1/charges" \
    -d amount=$((n * 100)) -d currency=eur -d source=tok_visa -d "description=customer $n" >/dev/null
  : >"done-$n"
done
