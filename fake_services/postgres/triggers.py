"""The SQL by which a PostgreSQL database keeps its own books, in the transaction of each change.

Every table gets its triggers, also one that the task makes: an event trigger puts them there in
the statement that creates it, so that a row is booked from the first one on. ``chaoskit.ledger``
has a line for each change of a row, with the server process and the transaction that made it, and
one of the kind ``layout`` when a table was made or altered. Rows of a table that is dropped are not
booked.
"""

from __future__ import annotations

INSTALL = """
CREATE SCHEMA chaoskit;
CREATE TABLE chaoskit.ledger (
    seq bigserial PRIMARY KEY, backend int NOT NULL DEFAULT pg_backend_pid(), kind text NOT NULL,
    tx bigint NOT NULL DEFAULT txid_current(), table_name text NOT NULL, "row" json, was json);
CREATE INDEX ON chaoskit.ledger (backend, seq);

CREATE FUNCTION chaoskit.name_of(a_schema name, a_table name) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE a_schema WHEN 'public' THEN a_table::text ELSE a_schema || '.' || a_table END
$$;

CREATE FUNCTION chaoskit.book() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    called text := chaoskit.name_of(TG_TABLE_SCHEMA, TG_TABLE_NAME);
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO chaoskit.ledger (kind, table_name, "row")
        VALUES ('insert', called, to_json(NEW));
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO chaoskit.ledger (kind, table_name, "row", was)
        VALUES ('update', called, to_json(NEW), to_json(OLD));
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO chaoskit.ledger (kind, table_name, "row")
        VALUES ('delete', called, to_json(OLD));
    ELSE
        EXECUTE format(
            'INSERT INTO chaoskit.ledger (kind, table_name, "row") '
            'SELECT ''delete'', %L, to_json(t) FROM %I.%I AS t',
            called, TG_TABLE_SCHEMA, TG_TABLE_NAME);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION chaoskit.watch(a_table regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    found record;
BEGIN
    SELECT c.relkind, c.relpersistence, n.nspname INTO found
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = a_table;
    IF found.relkind NOT IN ('r', 'p') OR found.relpersistence = 't'
        OR found.nspname IN ('chaoskit', 'pg_catalog', 'information_schema') THEN
        RETURN;
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_trigger WHERE tgrelid = a_table AND tgname = 'chaoskit_rows') THEN
        EXECUTE format(
            'CREATE TRIGGER chaoskit_rows AFTER INSERT OR UPDATE OR DELETE ON %s '
            'FOR EACH ROW EXECUTE FUNCTION chaoskit.book()', a_table);
    END IF;
    IF found.relkind = 'r'  -- a partitioned table has no rows but those of its partitions
        AND NOT EXISTS (
            SELECT FROM pg_trigger WHERE tgrelid = a_table AND tgname = 'chaoskit_all') THEN
        EXECUTE format(
            'CREATE TRIGGER chaoskit_all BEFORE TRUNCATE ON %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION chaoskit.book()', a_table);
    END IF;
END
$$;

CREATE FUNCTION chaoskit.created() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    command record;
BEGIN
    FOR command IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
        CONTINUE WHEN command.schema_name = 'chaoskit' OR command.object_type <> 'table';
        PERFORM chaoskit.watch(command.objid);
        INSERT INTO chaoskit.ledger (kind, table_name) VALUES ('layout', '');
        IF command.command_tag IN ('CREATE TABLE AS', 'SELECT INTO') THEN
            EXECUTE format(
                'INSERT INTO chaoskit.ledger (kind, table_name, "row") '
                'SELECT ''insert'', chaoskit.name_of(n.nspname, c.relname), to_json(t) '
                'FROM %s AS t, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace '
                'WHERE c.oid = %L::oid', command.objid::regclass, command.objid);
        END IF;
    END LOOP;
END
$$;
"""
"""What is in every database before its tables; `WATCH` comes after them."""

WATCH = """
SELECT chaoskit.watch(c.oid) FROM pg_class c WHERE c.relkind IN ('r', 'p');
CREATE EVENT TRIGGER chaoskit_created ON ddl_command_end
    WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE')
    EXECUTE FUNCTION chaoskit.created();
"""
