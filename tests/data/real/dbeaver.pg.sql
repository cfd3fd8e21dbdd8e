-- public.customer definition

-- Drop table

-- DROP TABLE public.customer;

CREATE TABLE public.customer (
	id serial4 NOT NULL,
	full_name varchar(80) DEFAULT 'n/a; none'::character varying NULL,
	born date NULL,
	CONSTRAINT customer_pkey PRIMARY KEY (id)
);
CREATE INDEX customer_full_name_idx ON public.customer USING btree (lower((full_name)::text));

-- Permissions

ALTER TABLE public.customer OWNER TO shop_admin;
GRANT ALL ON TABLE public.customer TO shop_admin;

INSERT INTO public.customer (full_name,born) VALUES
	 ('Zoë ''Z'' Müller','1990-01-31'),
	 (NULL,NULL),
	 ('a -- b /* c */','2000-02-29');

-- DROP FUNCTION public.age_of(int4);

CREATE OR REPLACE FUNCTION public.age_of(who integer)
 RETURNS interval
 LANGUAGE plpgsql
AS $function$
begin
  return (select age('2024-01-01', born) from public.customer where id = who); -- ';'
end;
$function$
;

CREATE OR REPLACE VIEW public.adults
AS SELECT customer.id
   FROM public.customer
  WHERE customer.born < '2006-01-01'::date;
