#!/usr/bin/env bash
# Charges two customers and notes each one in a file, after the charge: twice if killed in between.
# usage: two.sh PAYMENTS_URL
set -eu
for n in 1 2; do
  [ -e "done-$n" ] && continue
  curl -sS --fail -u sk_test_bash: "$1/v1/charges" \
    -d amount=$((n * 100)) -d currency=eur -d source=tok_visa >/dev/null
  echo "charged customer $n" >new
  mv new "done-$n"
done
