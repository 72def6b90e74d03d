"""An embedded database that books every change of a row in the transaction that makes it."""
