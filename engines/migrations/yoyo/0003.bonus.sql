-- depends: 0002.first
UPDATE customers SET balance = balance + 5;
