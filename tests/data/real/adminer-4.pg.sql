-- Adminer 4.8.1 PostgreSQL 15.4 dump

\connect "shop";

DROP TABLE IF EXISTS "items";
DROP SEQUENCE IF EXISTS items_id_seq;
CREATE SEQUENCE items_id_seq INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1;

CREATE TABLE "public"."items" (
    "id" integer DEFAULT nextval('items_id_seq') NOT NULL,
    "label" character varying(200) NOT NULL,
    "price" numeric(10,2) DEFAULT '0.00',
    CONSTRAINT "items_pkey" PRIMARY KEY ("id")
) WITH (oids = false);

CREATE INDEX "items_label" ON "public"."items" USING btree ("label");

COMMENT ON TABLE "public"."items" IS 'what is sold; ''quoted''';

TRUNCATE "items";
INSERT INTO "items" ("id", "label", "price") VALUES
(1,	'Böhmische Vase; 20 cm',	'19.90'),
(2,	'tab	inside',	NULL),
(3,	'backslash \ and ''quote''',	'0.00');

DROP VIEW IF EXISTS "cheap";
CREATE TABLE "cheap" ("id" integer, "label" character varying(200));


DROP TABLE IF EXISTS "cheap";
CREATE VIEW "cheap" AS SELECT items.id,
    items.label
   FROM items
  WHERE (items.price < 10);

-- 2024-05-05 10:11:12.12345+00
