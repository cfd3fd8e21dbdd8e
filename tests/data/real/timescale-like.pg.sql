--
-- PostgreSQL database dump
--

-- Dumped from database version 14.9 (Ubuntu 14.9-1.pgdg22.04+1)
-- Dumped by pg_dump version 14.9 (Ubuntu 14.9-1.pgdg22.04+1)

SET statement_timeout = 0;
SET client_encoding = 'SQL_ASCII';
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SELECT pg_catalog.set_config('search_path', '', false);

--
-- Name: pg_stat_statements; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public;


--
-- Name: EXTENSION pg_stat_statements; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION pg_stat_statements IS 'track planning and execution statistics of all SQL statements executed';


SET default_tablespace = ssd_space;

SET default_table_access_method = heap;

--
-- Name: conditions; Type: TABLE; Schema: public; Owner: tsdb
--

CREATE TABLE public.conditions (
    "time" timestamp with time zone NOT NULL,
    device text DEFAULT 'it\'s; \\ here'::text,
    temperature double precision
);


ALTER TABLE public.conditions OWNER TO tsdb;

SET default_tablespace = '';

--
-- Name: _hyper_1_1_chunk; Type: TABLE; Schema: public; Owner: tsdb
--

CREATE TABLE public._hyper_1_1_chunk (
    CONSTRAINT constraint_1 CHECK ((("time" >= '2023-12-28 00:00:00+00'::timestamp with time zone) AND ("time" < '2024-01-04 00:00:00+00'::timestamp with time zone)))
)
INHERITS (public.conditions);


ALTER TABLE public._hyper_1_1_chunk OWNER TO tsdb;

--
-- Data for Name: _hyper_1_1_chunk; Type: TABLE DATA; Schema: public; Owner: tsdb
--

INSERT INTO public._hyper_1_1_chunk ("time", device, temperature) VALUES
	('2024-01-01 00:00:00+00', 'a\\b;', 'NaN'),
	('2024-01-02 00:00:00+00', 'it\'s', '-Infinity');
INSERT INTO public._hyper_1_1_chunk ("time", device, temperature) VALUES
	('2024-01-03 00:00:00+00', E'tab\there', 1e-07);


--
-- Name: _hyper_1_1_chunk_time_idx; Type: INDEX; Schema: public; Owner: tsdb
--

CREATE INDEX _hyper_1_1_chunk_time_idx ON public._hyper_1_1_chunk USING btree ("time" DESC);


--
-- Name: conditions ts_insert_blocker; Type: RULE; Schema: public; Owner: tsdb
--

CREATE RULE ts_insert_blocker AS
    ON INSERT TO public.conditions
   WHERE (new.device = 'nobody; ever'::text) DO INSTEAD NOTHING;


--
-- Name: stop_ddl; Type: EVENT TRIGGER; Schema: -; Owner: postgres
--

CREATE FUNCTION public.nothing() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER stop_ddl ON ddl_command_end
   EXECUTE FUNCTION public.nothing();


--
-- Name: TABLE conditions; Type: ACL; Schema: public; Owner: tsdb
--

REVOKE ALL ON TABLE public.conditions FROM tsdb;
GRANT SELECT ON TABLE public.conditions TO PUBLIC;


--
-- PostgreSQL database dump complete
--

