-- a script for psql: COPY of CSV, variables, a block
\set ON_ERROR_STOP on
\encoding UTF8
\timing off
\pset pager off
\echo loading
BEGIN;
CREATE TABLE city (id int PRIMARY KEY, name text, region char(3), founded date, area numeric);
COPY city FROM STDIN WITH (FORMAT csv, HEADER true, NULL '', QUOTE '"');
id,name,region,founded,area
1,"Aachen; old",NRW,0800-01-01,160.85
2,"Two
lines, and a \.
end",BAV,1200-02-03,
3,"quote "" inside",,1900-05-05,1e3
\.
COPY city (id, name) FROM STDIN DELIMITER '|' NULL 'nil' ESCAPE '\' CSV;
4|nil
5|"a|b"
\.
COMMIT;
CREATE INDEX CONCURRENTLY city_name ON city (name);
VACUUM ANALYZE city;
DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'nobody_here') THEN RAISE NOTICE 'ERROR: not one'; END IF; END $do$;
SELECT count(*) AS n FROM city \gset
\echo :n rows
