-- The tables of order entry. Keys are created after the rows are loaded (keys.postgres.sql). Wide columns come first,
-- so that alignment wastes no space.
-- bytes: 16000000
create table igen_region (region_id smallint primary key, name text not null);
insert into igen_region values
    (1, 'Asia'), (2, 'Europe'), (3, 'North America'), (4, 'South America'), (5, 'Africa'), (6, 'Oceania');
create table igen_customer (
    spent_cents bigint not null,
    customer_id integer not null,
    since date not null,
    region_id smallint not null,
    name text not null,
    email text not null,
    street text not null,
    city text not null
);
create table igen_product (
    product_id integer not null,
    category_id integer not null,
    price_cents integer not null,
    name text not null,
    description text not null
);
create table igen_stock (
    product_id integer not null,
    quantity integer not null,
    region_id smallint not null
);
create table igen_order (
    total_cents bigint not null,
    placed_at timestamp not null,
    customer_id integer not null,
    order_no integer not null,
    line_count smallint not null,
    status text not null
);
create table igen_order_line (
    customer_id integer not null,
    order_no integer not null,
    product_id integer not null,
    price_cents integer not null,
    line_no smallint not null,
    quantity smallint not null
);
