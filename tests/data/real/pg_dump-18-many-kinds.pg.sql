--
-- PostgreSQL database dump
--

\restrict W9WyuSfpAfPPIM5MGYMNqdYP7aRXICdfg6YEJ4Hrj9kSpobHjIX0GQwNejRcyRE

-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: Mixed Case; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA "Mixed Case";


ALTER SCHEMA "Mixed Case" OWNER TO postgres;

--
-- Name: sales; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA sales;


ALTER SCHEMA sales OWNER TO postgres;

--
-- Name: posix; Type: COLLATION; Schema: sales; Owner: postgres
--

CREATE COLLATION sales.posix (provider = libc, locale = 'C');


ALTER COLLATION sales.posix OWNER TO postgres;

--
-- Name: amount; Type: DOMAIN; Schema: sales; Owner: postgres
--

CREATE DOMAIN sales.amount AS numeric(12,2) DEFAULT 0
	CONSTRAINT amount_check CHECK ((VALUE >= (0)::numeric));


ALTER DOMAIN sales.amount OWNER TO postgres;

--
-- Name: mood; Type: TYPE; Schema: sales; Owner: postgres
--

CREATE TYPE sales.mood AS ENUM (
    'sad',
    'ok',
    'happy'
);


ALTER TYPE sales.mood OWNER TO postgres;

--
-- Name: pair; Type: TYPE; Schema: sales; Owner: postgres
--

CREATE TYPE sales.pair AS (
	a integer,
	b text
);


ALTER TYPE sales.pair OWNER TO postgres;

--
-- Name: span; Type: TYPE; Schema: sales; Owner: postgres
--

CREATE TYPE sales.span AS RANGE (
    subtype = double precision,
    multirange_type_name = sales.span_multirange,
    subtype_diff = float8mi
);


ALTER TYPE sales.span OWNER TO postgres;

--
-- Name: zip; Type: DOMAIN; Schema: sales; Owner: postgres
--

CREATE DOMAIN sales.zip AS text NOT NULL
	CONSTRAINT zip_check CHECK ((VALUE ~ '^\d{5}$'::text));


ALTER DOMAIN sales.zip OWNER TO postgres;

--
-- Name: CAST (sales.pair AS text); Type: CAST; Schema: -; Owner: -
--

CREATE CAST (sales.pair AS text) WITH INOUT;


--
-- Name: on_ddl(); Type: FUNCTION; Schema: sales; Owner: postgres
--

CREATE FUNCTION sales.on_ddl() RETURNS event_trigger
    LANGUAGE plpgsql
    AS $$ begin raise notice 'ERROR:  ddl %', tg_tag; end $$;


ALTER FUNCTION sales.on_ddl() OWNER TO postgres;

--
-- Name: tidy(integer); Type: PROCEDURE; Schema: sales; Owner: postgres
--

CREATE PROCEDURE sales.tidy(INOUT n integer)
    LANGUAGE plpgsql
    AS $$ begin delete from sales.scratch where a < n; commit; n := n + 1; end $$;


ALTER PROCEDURE sales.tidy(INOUT n integer) OWNER TO postgres;

SET default_tablespace = '';

--
-- Name: orders; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.orders (
    id bigint NOT NULL,
    customer bigint NOT NULL,
    placed timestamp with time zone DEFAULT '2024-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    total sales.amount,
    note text
)
PARTITION BY RANGE (placed);
ALTER TABLE ONLY sales.orders ALTER COLUMN customer SET STATISTICS 500;


ALTER TABLE sales.orders OWNER TO postgres;

--
-- Name: total(bigint); Type: FUNCTION; Schema: sales; Owner: postgres
--

CREATE FUNCTION sales.total(c bigint) RETURNS numeric
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT COALESCE(sum((o.total)::numeric), (0)::numeric) AS "coalesce"
    FROM sales.orders o
   WHERE (o.customer = total.c);
END;


ALTER FUNCTION sales.total(c bigint) OWNER TO postgres;

--
-- Name: touch(); Type: FUNCTION; Schema: sales; Owner: postgres
--

CREATE FUNCTION sales.touch() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
begin
  -- COPY nothing FROM stdin;
  new.note := format('%s; %I', coalesce(new.note, ''), 'a b') || $q$ \. $q$;
  return new;
end $_$;


ALTER FUNCTION sales.touch() OWNER TO postgres;

--
-- Name: longest(text); Type: AGGREGATE; Schema: sales; Owner: postgres
--

CREATE AGGREGATE sales.longest(text) (
    SFUNC = textcat,
    STYPE = text,
    INITCOND = ''
);


ALTER AGGREGATE sales.longest(text) OWNER TO postgres;

--
-- Name: ===; Type: OPERATOR; Schema: sales; Owner: postgres
--

CREATE OPERATOR sales.=== (
    FUNCTION = int4eq,
    LEFTARG = integer,
    RIGHTARG = integer,
    COMMUTATOR = OPERATOR(sales.===)
);


ALTER OPERATOR sales.=== (integer, integer) OWNER TO postgres;

--
-- Name: mine; Type: TEXT SEARCH CONFIGURATION; Schema: sales; Owner: postgres
--

CREATE TEXT SEARCH CONFIGURATION sales.mine (
    PARSER = pg_catalog."default" );

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR asciiword WITH english_stem;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR word WITH english_stem;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR numword WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR email WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR url WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR host WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR sfloat WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR version WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR hword_numpart WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR hword_part WITH english_stem;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR hword_asciipart WITH english_stem;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR numhword WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR asciihword WITH english_stem;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR hword WITH english_stem;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR url_path WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR file WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR "float" WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR "int" WITH simple;

ALTER TEXT SEARCH CONFIGURATION sales.mine
    ADD MAPPING FOR uint WITH simple;


ALTER TEXT SEARCH CONFIGURATION sales.mine OWNER TO postgres;

SET default_table_access_method = heap;

--
-- Name: Strange "name"; drop; Type: TABLE; Schema: Mixed Case; Owner: postgres
--

CREATE TABLE "Mixed Case"."Strange ""name""; drop" (
    "select" integer,
    "a b" text DEFAULT 'x;y'::text,
    "tab	col" bytea
)
WITH (fillfactor='70', autovacuum_enabled='false');


ALTER TABLE "Mixed Case"."Strange ""name""; drop" OWNER TO postgres;

--
-- Name: parent; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.parent (
    id integer,
    x text
);


ALTER TABLE sales.parent OWNER TO postgres;

--
-- Name: child; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.child (
    y text
)
INHERITS (sales.parent);


ALTER TABLE sales.child OWNER TO postgres;

--
-- Name: sized; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.sized (
    a text
);
ALTER TABLE ONLY sales.sized ALTER COLUMN a SET STORAGE EXTERNAL;
ALTER TABLE ONLY sales.sized ALTER COLUMN a SET COMPRESSION pglz;


ALTER TABLE sales.sized OWNER TO postgres;

--
-- Name: counter; Type: SEQUENCE; Schema: sales; Owner: postgres
--

CREATE SEQUENCE sales.counter
    AS smallint
    START WITH 5
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 30000
    CACHE 1
    CYCLE;


ALTER SEQUENCE sales.counter OWNER TO postgres;

--
-- Name: counter; Type: SEQUENCE OWNED BY; Schema: sales; Owner: postgres
--

ALTER SEQUENCE sales.counter OWNED BY sales.sized.a;


--
-- Name: customers; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.customers (
    id bigint NOT NULL,
    name text NOT NULL COLLATE sales.posix,
    code sales.zip DEFAULT '00000'::text,
    mood sales.mood DEFAULT 'ok'::sales.mood,
    extra jsonb DEFAULT '{}'::jsonb,
    tags text[],
    p sales.pair,
    upper_name text GENERATED ALWAYS AS (upper(name)) STORED,
    twice bigint GENERATED ALWAYS AS ((length(name) * 2))
);

ALTER TABLE ONLY sales.customers FORCE ROW LEVEL SECURITY;


ALTER TABLE sales.customers OWNER TO postgres;

--
-- Name: COLUMN customers.name; Type: COMMENT; Schema: sales; Owner: postgres
--

COMMENT ON COLUMN sales.customers.name IS 'has; a semicolon, a ''quote'' and
COPY x FROM stdin;
\.';


--
-- Name: customers_id_seq; Type: SEQUENCE; Schema: sales; Owner: postgres
--

ALTER TABLE sales.customers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sales.customers_id_seq
    START WITH 100
    INCREMENT BY 5
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: hashed; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.hashed (
    k integer,
    v text
)
PARTITION BY HASH (k);


ALTER TABLE sales.hashed OWNER TO postgres;

--
-- Name: h0; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.h0 (
    k integer,
    v text
);


ALTER TABLE sales.h0 OWNER TO postgres;

--
-- Name: h1; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.h1 (
    k integer,
    v text
);


ALTER TABLE sales.h1 OWNER TO postgres;

--
-- Name: happy; Type: VIEW; Schema: sales; Owner: postgres
--

CREATE VIEW sales.happy WITH (security_barrier='true') AS
 SELECT id,
    name
   FROM sales.customers
  WHERE (mood = 'happy'::sales.mood)
  WITH LOCAL CHECK OPTION;


ALTER VIEW sales.happy OWNER TO postgres;

--
-- Name: orders_2024; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.orders_2024 (
    id bigint CONSTRAINT orders_id_not_null NOT NULL,
    customer bigint CONSTRAINT orders_customer_not_null NOT NULL,
    placed timestamp with time zone DEFAULT '2024-01-01 00:00:00+00'::timestamp with time zone CONSTRAINT orders_placed_not_null NOT NULL,
    total sales.amount,
    note text
)
PARTITION BY LIST (customer);
ALTER TABLE ONLY sales.orders_2024 ALTER COLUMN customer SET STATISTICS 500;


ALTER TABLE sales.orders_2024 OWNER TO postgres;

--
-- Name: orders_2024_a; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.orders_2024_a (
    id bigint CONSTRAINT orders_id_not_null NOT NULL,
    customer bigint CONSTRAINT orders_customer_not_null NOT NULL,
    placed timestamp with time zone DEFAULT '2024-01-01 00:00:00+00'::timestamp with time zone CONSTRAINT orders_placed_not_null NOT NULL,
    total sales.amount,
    note text
);
ALTER TABLE ONLY sales.orders_2024_a ALTER COLUMN customer SET STATISTICS 500;


ALTER TABLE sales.orders_2024_a OWNER TO postgres;

--
-- Name: orders_2024_d; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.orders_2024_d (
    id bigint CONSTRAINT orders_id_not_null NOT NULL,
    customer bigint CONSTRAINT orders_customer_not_null NOT NULL,
    placed timestamp with time zone DEFAULT '2024-01-01 00:00:00+00'::timestamp with time zone CONSTRAINT orders_placed_not_null NOT NULL,
    total sales.amount,
    note text
);
ALTER TABLE ONLY sales.orders_2024_d ALTER COLUMN customer SET STATISTICS 500;


ALTER TABLE sales.orders_2024_d OWNER TO postgres;

--
-- Name: orders_d; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.orders_d (
    id bigint CONSTRAINT orders_id_not_null NOT NULL,
    customer bigint CONSTRAINT orders_customer_not_null NOT NULL,
    placed timestamp with time zone DEFAULT '2024-01-01 00:00:00+00'::timestamp with time zone CONSTRAINT orders_placed_not_null NOT NULL,
    total sales.amount,
    note text
);
ALTER TABLE ONLY sales.orders_d ALTER COLUMN customer SET STATISTICS 500;


ALTER TABLE sales.orders_d OWNER TO postgres;

--
-- Name: orders_id_seq; Type: SEQUENCE; Schema: sales; Owner: postgres
--

ALTER TABLE sales.orders ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME sales.orders_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rooms; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE TABLE sales.rooms (
    room integer,
    during int4range
);


ALTER TABLE sales.rooms OWNER TO postgres;

--
-- Name: scratch; Type: TABLE; Schema: sales; Owner: postgres
--

CREATE UNLOGGED TABLE sales.scratch (
    a integer
);


ALTER TABLE sales.scratch OWNER TO postgres;

--
-- Name: sums; Type: MATERIALIZED VIEW; Schema: sales; Owner: postgres
--

CREATE MATERIALIZED VIEW sales.sums AS
 SELECT customer,
    sum((total)::numeric) AS s
   FROM sales.orders
  GROUP BY customer
  WITH NO DATA;


ALTER MATERIALIZED VIEW sales.sums OWNER TO postgres;

--
-- Name: h0; Type: TABLE ATTACH; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.hashed ATTACH PARTITION sales.h0 FOR VALUES WITH (modulus 2, remainder 0);


--
-- Name: h1; Type: TABLE ATTACH; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.hashed ATTACH PARTITION sales.h1 FOR VALUES WITH (modulus 2, remainder 1);


--
-- Name: orders_2024; Type: TABLE ATTACH; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders ATTACH PARTITION sales.orders_2024 FOR VALUES FROM ('2024-01-01 00:00:00+00') TO ('2025-01-01 00:00:00+00');


--
-- Name: orders_2024_a; Type: TABLE ATTACH; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders_2024 ATTACH PARTITION sales.orders_2024_a FOR VALUES IN ('100', '105');


--
-- Name: orders_2024_d; Type: TABLE ATTACH; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders_2024 ATTACH PARTITION sales.orders_2024_d DEFAULT;


--
-- Name: orders_d; Type: TABLE ATTACH; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders ATTACH PARTITION sales.orders_d DEFAULT;


--
-- Data for Name: Strange "name"; drop; Type: TABLE DATA; Schema: Mixed Case; Owner: postgres
--

COPY "Mixed Case"."Strange ""name""; drop" ("select", "a b", "tab	col") FROM stdin;
1	\\N	\\x00ff
2	\N	\N
3		\\x
\.


--
-- Data for Name: child; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.child (id, x, y) FROM stdin;
2	p	\r\nx
\.


--
-- Data for Name: customers; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.customers (id, name, code, mood, extra, tags, p) FROM stdin;
100	n1	00001	ok	{"i": 1, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(1,"x\\\\y")
105	n2	00002	happy	{"i": 2, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(2,"x\\\\y")
110	n3\ttab\\back\nline	00003	sad	{"i": 3, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(3,"x\\\\y")
115	n4	00004	ok	{"i": 4, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(4,"x\\\\y")
120	n5	00005	happy	{"i": 5, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(5,"x\\\\y")
125	n6	00006	sad	{"i": 6, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(6,"x\\\\y")
130	n7	00007	ok	{"i": 7, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(7,"x\\\\y")
135	n8	00008	happy	{"i": 8, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(8,"x\\\\y")
140	n9	00009	sad	{"i": 9, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(9,"x\\\\y")
145	n10	00010	ok	{"i": 10, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(10,"x\\\\y")
150	n11	00011	happy	{"i": 11, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(11,"x\\\\y")
155	n12	00012	sad	{"i": 12, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(12,"x\\\\y")
160	n13	00013	ok	{"i": 13, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(13,"x\\\\y")
165	n14	00014	happy	{"i": 14, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(14,"x\\\\y")
170	n15	00015	sad	{"i": 15, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(15,"x\\\\y")
175	n16	00016	ok	{"i": 16, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(16,"x\\\\y")
180	n17	00017	happy	{"i": 17, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(17,"x\\\\y")
185	n18	00018	sad	{"i": 18, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(18,"x\\\\y")
190	n19	00019	ok	{"i": 19, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(19,"x\\\\y")
195	n20	00020	happy	{"i": 20, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(20,"x\\\\y")
200	n21	00021	sad	{"i": 21, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(21,"x\\\\y")
205	n22	00022	ok	{"i": 22, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(22,"x\\\\y")
210	n23	00023	happy	{"i": 23, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(23,"x\\\\y")
215	n24	00024	sad	{"i": 24, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(24,"x\\\\y")
220	n25	00025	ok	{"i": 25, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(25,"x\\\\y")
225	n26	00026	happy	{"i": 26, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(26,"x\\\\y")
230	n27	00027	sad	{"i": 27, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(27,"x\\\\y")
235	n28	00028	ok	{"i": 28, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(28,"x\\\\y")
240	n29	00029	happy	{"i": 29, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(29,"x\\\\y")
245	n30	00030	sad	{"i": 30, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(30,"x\\\\y")
250	n31	00031	ok	{"i": 31, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(31,"x\\\\y")
255	n32	00032	happy	{"i": 32, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(32,"x\\\\y")
260	n33	00033	sad	{"i": 33, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(33,"x\\\\y")
265	n34	00034	ok	{"i": 34, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(34,"x\\\\y")
270	n35	00035	happy	{"i": 35, "q": "\\"\\\\."}	{a,NULL,"b,c","\\""}	(35,"x\\\\y")
\.


--
-- Data for Name: h0; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.h0 (k, v) FROM stdin;
1	\\.
2	\\.
\.


--
-- Data for Name: h1; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.h1 (k, v) FROM stdin;
3	\\.
4	\\.
5	\\.
6	\\.
7	\\.
8	\\.
9	\\.
\.


--
-- Data for Name: orders_2024_a; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.orders_2024_a (id, customer, placed, total, note) FROM stdin;
1	105	2024-01-10 00:00:00+00	1.00	note 1
30	100	2024-09-27 00:00:00+00	30.00	note 30
31	105	2024-10-06 00:00:00+00	31.00	note 31
\.


--
-- Data for Name: orders_2024_d; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.orders_2024_d (id, customer, placed, total, note) FROM stdin;
2	110	2024-01-19 00:00:00+00	2.00	note 2
3	115	2024-01-28 00:00:00+00	3.00	note 3
4	120	2024-02-06 00:00:00+00	4.00	note 4
5	125	2024-02-15 00:00:00+00	5.00	note 5
6	130	2024-02-24 00:00:00+00	6.00	note 6
7	135	2024-03-04 00:00:00+00	7.00	; "a b" \\. 
8	140	2024-03-13 00:00:00+00	8.00	note 8
9	145	2024-03-22 00:00:00+00	9.00	note 9
10	150	2024-03-31 00:00:00+00	10.00	note 10
11	155	2024-04-09 00:00:00+00	11.00	note 11
12	160	2024-04-18 00:00:00+00	12.00	note 12
13	165	2024-04-27 00:00:00+00	13.00	note 13
14	170	2024-05-06 00:00:00+00	14.00	note 14
15	175	2024-05-15 00:00:00+00	15.00	note 15
16	180	2024-05-24 00:00:00+00	16.00	note 16
17	185	2024-06-02 00:00:00+00	17.00	note 17
18	190	2024-06-11 00:00:00+00	18.00	note 18
19	195	2024-06-20 00:00:00+00	19.00	note 19
20	200	2024-06-29 00:00:00+00	20.00	note 20
21	205	2024-07-08 00:00:00+00	21.00	note 21
22	210	2024-07-17 00:00:00+00	22.00	note 22
23	215	2024-07-26 00:00:00+00	23.00	note 23
24	220	2024-08-04 00:00:00+00	24.00	note 24
25	225	2024-08-13 00:00:00+00	25.00	note 25
26	230	2024-08-22 00:00:00+00	26.00	note 26
27	235	2024-08-31 00:00:00+00	27.00	note 27
28	240	2024-09-09 00:00:00+00	28.00	note 28
29	245	2024-09-18 00:00:00+00	29.00	note 29
32	110	2024-10-15 00:00:00+00	32.00	note 32
33	115	2024-10-24 00:00:00+00	33.00	note 33
34	120	2024-11-02 00:00:00+00	34.00	note 34
35	125	2024-11-11 00:00:00+00	35.00	note 35
36	130	2024-11-20 00:00:00+00	36.00	note 36
37	135	2024-11-29 00:00:00+00	37.00	note 37
38	140	2024-12-08 00:00:00+00	38.00	note 38
39	145	2024-12-17 00:00:00+00	39.00	note 39
40	150	2024-12-26 00:00:00+00	40.00	note 40
\.


--
-- Data for Name: orders_d; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.orders_d (id, customer, placed, total, note) FROM stdin;
41	155	2025-01-04 00:00:00+00	41.00	note 41
42	160	2025-01-13 00:00:00+00	42.00	note 42
43	165	2025-01-22 00:00:00+00	43.00	note 43
44	170	2025-01-31 00:00:00+00	44.00	note 44
45	175	2025-02-09 00:00:00+00	45.00	note 45
46	180	2025-02-18 00:00:00+00	46.00	note 46
47	185	2025-02-27 00:00:00+00	47.00	note 47
48	190	2025-03-08 00:00:00+00	48.00	note 48
49	195	2025-03-17 00:00:00+00	49.00	note 49
50	200	2025-03-26 00:00:00+00	50.00	note 50
51	205	2025-04-04 00:00:00+00	51.00	note 51
52	210	2025-04-13 00:00:00+00	52.00	note 52
53	215	2025-04-22 00:00:00+00	53.00	note 53
54	220	2025-05-01 00:00:00+00	54.00	note 54
55	225	2025-05-10 00:00:00+00	55.00	note 55
56	230	2025-05-19 00:00:00+00	56.00	note 56
57	235	2025-05-28 00:00:00+00	57.00	note 57
58	240	2025-06-06 00:00:00+00	58.00	note 58
59	245	2025-06-15 00:00:00+00	59.00	note 59
60	100	2025-06-24 00:00:00+00	60.00	note 60
\.


--
-- Data for Name: parent; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.parent (id, x) FROM stdin;
1	BEGIN;
9	COMMIT;
\.


--
-- Data for Name: rooms; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.rooms (room, during) FROM stdin;
1	[1,3)
2	[1,3)
1	\N
\.


--
-- Data for Name: scratch; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.scratch (a) FROM stdin;
1
7
\.


--
-- Data for Name: sized; Type: TABLE DATA; Schema: sales; Owner: postgres
--

COPY sales.sized (a) FROM stdin;
long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long 
\.


--
-- Name: counter; Type: SEQUENCE SET; Schema: sales; Owner: postgres
--

SELECT pg_catalog.setval('sales.counter', 6, true);


--
-- Name: customers_id_seq; Type: SEQUENCE SET; Schema: sales; Owner: postgres
--

SELECT pg_catalog.setval('sales.customers_id_seq', 270, true);


--
-- Name: orders_id_seq; Type: SEQUENCE SET; Schema: sales; Owner: postgres
--

SELECT pg_catalog.setval('sales.orders_id_seq', 60, true);


--
-- Name: 16598..16599; Type: BLOB METADATA; Schema: -; Owner: postgres
--

SELECT pg_catalog.lo_create('16598');
SELECT pg_catalog.lo_create('16599');

ALTER LARGE OBJECT 16598 OWNER TO postgres;
ALTER LARGE OBJECT 16599 OWNER TO postgres;

--
-- Data for Name: 16598..16599; Type: BLOBS; Schema: -; Owner: postgres
--

BEGIN;

SELECT pg_catalog.lo_open('16598', 131072);
SELECT pg_catalog.lowrite(0, '\x0102030000ff');
SELECT pg_catalog.lo_close(0);

SELECT pg_catalog.lo_open('16599', 131072);
SELECT pg_catalog.lowrite(0, '\x6c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a6563746c617267653b206f626a656374');
SELECT pg_catalog.lo_close(0);

COMMIT;

--
-- Name: customers customers_name_code_key; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.customers
    ADD CONSTRAINT customers_name_code_key UNIQUE NULLS NOT DISTINCT (name, code);


--
-- Name: customers customers_pkey; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (id);


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id, placed, customer);


--
-- Name: orders_2024 orders_2024_pkey; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders_2024
    ADD CONSTRAINT orders_2024_pkey PRIMARY KEY (id, placed, customer);


--
-- Name: orders_2024_a orders_2024_a_pkey; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders_2024_a
    ADD CONSTRAINT orders_2024_a_pkey PRIMARY KEY (id, placed, customer);


--
-- Name: orders_2024_d orders_2024_d_pkey; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders_2024_d
    ADD CONSTRAINT orders_2024_d_pkey PRIMARY KEY (id, placed, customer);


--
-- Name: orders_d orders_d_pkey; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.orders_d
    ADD CONSTRAINT orders_d_pkey PRIMARY KEY (id, placed, customer);


--
-- Name: rooms rooms_during_excl; Type: CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE ONLY sales.rooms
    ADD CONSTRAINT rooms_during_excl EXCLUDE USING gist (during WITH &&) WHERE ((room = 1));


--
-- Name: orders_customer_placed_total_idx; Type: INDEX; Schema: sales; Owner: postgres
--

CREATE INDEX orders_customer_placed_total_idx ON ONLY sales.orders USING btree (customer, placed DESC) INCLUDE (total) WHERE ((total)::numeric > (10)::numeric);


--
-- Name: orders_2024_customer_placed_total_idx; Type: INDEX; Schema: sales; Owner: postgres
--

CREATE INDEX orders_2024_customer_placed_total_idx ON ONLY sales.orders_2024 USING btree (customer, placed DESC) INCLUDE (total) WHERE ((total)::numeric > (10)::numeric);


--
-- Name: orders_2024_a_customer_placed_total_idx; Type: INDEX; Schema: sales; Owner: postgres
--

CREATE INDEX orders_2024_a_customer_placed_total_idx ON sales.orders_2024_a USING btree (customer, placed DESC) INCLUDE (total) WHERE ((total)::numeric > (10)::numeric);


--
-- Name: orders_2024_d_customer_placed_total_idx; Type: INDEX; Schema: sales; Owner: postgres
--

CREATE INDEX orders_2024_d_customer_placed_total_idx ON sales.orders_2024_d USING btree (customer, placed DESC) INCLUDE (total) WHERE ((total)::numeric > (10)::numeric);


--
-- Name: orders_d_customer_placed_total_idx; Type: INDEX; Schema: sales; Owner: postgres
--

CREATE INDEX orders_d_customer_placed_total_idx ON sales.orders_d USING btree (customer, placed DESC) INCLUDE (total) WHERE ((total)::numeric > (10)::numeric);


--
-- Name: sums_customer_idx; Type: INDEX; Schema: sales; Owner: postgres
--

CREATE UNIQUE INDEX sums_customer_idx ON sales.sums USING btree (customer);


--
-- Name: orders_2024_a_customer_placed_total_idx; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_2024_customer_placed_total_idx ATTACH PARTITION sales.orders_2024_a_customer_placed_total_idx;


--
-- Name: orders_2024_a_pkey; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_2024_pkey ATTACH PARTITION sales.orders_2024_a_pkey;


--
-- Name: orders_2024_customer_placed_total_idx; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_customer_placed_total_idx ATTACH PARTITION sales.orders_2024_customer_placed_total_idx;


--
-- Name: orders_2024_d_customer_placed_total_idx; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_2024_customer_placed_total_idx ATTACH PARTITION sales.orders_2024_d_customer_placed_total_idx;


--
-- Name: orders_2024_d_pkey; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_2024_pkey ATTACH PARTITION sales.orders_2024_d_pkey;


--
-- Name: orders_2024_pkey; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_pkey ATTACH PARTITION sales.orders_2024_pkey;


--
-- Name: orders_d_customer_placed_total_idx; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_customer_placed_total_idx ATTACH PARTITION sales.orders_d_customer_placed_total_idx;


--
-- Name: orders_d_pkey; Type: INDEX ATTACH; Schema: sales; Owner: postgres
--

ALTER INDEX sales.orders_pkey ATTACH PARTITION sales.orders_d_pkey;


--
-- Name: st; Type: STATISTICS; Schema: sales; Owner: postgres
--

CREATE STATISTICS sales.st (dependencies, mcv) ON customer, total FROM sales.orders;


ALTER STATISTICS sales.st OWNER TO postgres;

--
-- Name: rooms no_del; Type: RULE; Schema: sales; Owner: postgres
--

CREATE RULE no_del AS
    ON DELETE TO sales.rooms DO INSTEAD NOTHING;


--
-- Name: orders touched; Type: TRIGGER; Schema: sales; Owner: postgres
--

CREATE TRIGGER touched BEFORE INSERT OR UPDATE OF note ON sales.orders FOR EACH ROW WHEN ((new.note IS NULL)) EXECUTE FUNCTION sales.touch();


--
-- Name: orders orders_customer_fkey; Type: FK CONSTRAINT; Schema: sales; Owner: postgres
--

ALTER TABLE sales.orders
    ADD CONSTRAINT orders_customer_fkey FOREIGN KEY (customer) REFERENCES sales.customers(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;


--
-- Name: customers; Type: ROW SECURITY; Schema: sales; Owner: postgres
--

ALTER TABLE sales.customers ENABLE ROW LEVEL SECURITY;

--
-- Name: customers own; Type: POLICY; Schema: sales; Owner: postgres
--

CREATE POLICY own ON sales.customers FOR SELECT USING ((name = CURRENT_USER));


--
-- Name: p; Type: PUBLICATION; Schema: -; Owner: postgres
--

CREATE PUBLICATION p WITH (publish = 'insert, update, delete, truncate');


ALTER PUBLICATION p OWNER TO postgres;

--
-- Name: p child; Type: PUBLICATION TABLE; Schema: sales; Owner: postgres
--

ALTER PUBLICATION p ADD TABLE ONLY sales.child WHERE ((id > 3));


--
-- Name: p parent; Type: PUBLICATION TABLE; Schema: sales; Owner: postgres
--

ALTER PUBLICATION p ADD TABLE ONLY sales.parent WHERE ((id > 3));


--
-- Name: TABLE happy; Type: ACL; Schema: sales; Owner: postgres
--

GRANT SELECT ON TABLE sales.happy TO PUBLIC;


--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: sales; Owner: postgres
--

ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA sales GRANT SELECT ON TABLES TO PUBLIC;


--
-- Name: watch; Type: EVENT TRIGGER; Schema: -; Owner: postgres
--

CREATE EVENT TRIGGER watch ON ddl_command_end
         WHEN TAG IN ('DROP TABLE')
   EXECUTE FUNCTION sales.on_ddl();


ALTER EVENT TRIGGER watch OWNER TO postgres;

--
-- Name: sums; Type: MATERIALIZED VIEW DATA; Schema: sales; Owner: postgres
--

REFRESH MATERIALIZED VIEW sales.sums;


--
-- PostgreSQL database dump complete
--

\unrestrict W9WyuSfpAfPPIM5MGYMNqdYP7aRXICdfg6YEJ4Hrj9kSpobHjIX0GQwNejRcyRE

