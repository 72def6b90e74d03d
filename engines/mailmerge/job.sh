#!/bin/bash
# Nightly invoices. Starts where the last run stopped.
here=$(dirname "$(readlink -f "$0")")
printf '[smtp_server]\nhost = 127.0.0.1\nport = %s\n' "$SMTP_PORT" > server.conf
sent=$(grep -c 'message [0-9]* sent' sent.log 2>/dev/null)
mailmerge --no-dry-run --no-limit --resume $((${sent:-0} + 1)) --config server.conf \
    --template "$here/mailmerge_template.txt" --database "$here/mailmerge_database.csv" >> sent.log
