--
-- PostgreSQL database dump
--

-- Dumped from database version 9.6.24
-- Dumped by pg_dump version 9.6.24

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'LATIN1';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: plpgsql; Type: EXTENSION; Schema: -; Owner: 
--

CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;


--
-- Name: EXTENSION plpgsql; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION plpgsql IS 'PL/pgSQL procedural language';


SET default_tablespace = '';

SET default_with_oids = false;

--
-- Name: books; Type: TABLE; Schema: public; Owner: library
--

CREATE TABLE public.books (
    id integer NOT NULL,
    title character varying(80),
    cover oid
);


ALTER TABLE public.books OWNER TO library;

CREATE SEQUENCE public.books_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.books_id_seq OWNER TO library;
ALTER SEQUENCE public.books_id_seq OWNED BY public.books.id;
ALTER TABLE ONLY public.books ALTER COLUMN id SET DEFAULT nextval('public.books_id_seq'::regclass);


--
-- Name: 70001; Type: BLOB; Schema: -; Owner: library
--

SELECT pg_catalog.lo_create('70001');


ALTER LARGE OBJECT 70001 OWNER TO library;

--
-- Data for Name: books; Type: TABLE DATA; Schema: public; Owner: library
--

COPY public.books (id, title, cover) FROM stdin;
1	Straßenbahn	70001
2	Müller ß	\N
3		\N
\.


--
-- Name: books_id_seq; Type: SEQUENCE SET; Schema: public; Owner: library
--

SELECT pg_catalog.setval('public.books_id_seq', 3, true);


--
-- Data for Name: BLOBS; Type: BLOBS; Schema: -; Owner: 
--

SET search_path = pg_catalog;

BEGIN;

SELECT pg_catalog.lo_open('70001', 131072);
SELECT pg_catalog.lowrite(0, '\x89504e470d0a1a0a3b270a5c2e0a');
SELECT pg_catalog.lo_close(0);

COMMIT;

SET search_path = public, pg_catalog;

ALTER TABLE ONLY public.books
    ADD CONSTRAINT books_pkey PRIMARY KEY (id);


--
-- Name: 70001; Type: ACL; Schema: -; Owner: library
--

REVOKE ALL ON LARGE OBJECT 70001 FROM PUBLIC;
GRANT SELECT ON LARGE OBJECT 70001 TO reader;


--
-- PostgreSQL database dump complete
--

