-- depends: 0001.customers
INSERT INTO customers VALUES (1, 'Ada', 10), (2, 'Bo', 20), (3, 'Cy', 30);
