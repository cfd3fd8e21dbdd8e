-- Rows are loaded in the order of their keys, so that maintaining the keys costs little while loading.
-- bytes: 5500000
create table igen_region (region_id integer primary key, name text not null);
insert into igen_region values
    (1, 'Asia'), (2, 'Europe'), (3, 'North America'), (4, 'South America'), (5, 'Africa'), (6, 'Oceania');
create table igen_customer (
    customer_id integer primary key,
    region_id integer not null,
    name text not null,
    email text not null,
    street text not null,
    city text not null,
    since text not null,
    spent_cents integer not null
);
create table igen_product (
    product_id integer primary key,
    category_id integer not null,
    price_cents integer not null,
    name text not null,
    description text not null
);
create table igen_stock (
    product_id integer not null,
    region_id integer not null,
    quantity integer not null,
    primary key (product_id, region_id)
) without rowid;
create table igen_order (
    customer_id integer not null,
    order_no integer not null,
    line_count integer not null,
    total_cents integer not null,
    placed_at text not null,
    status text not null,
    primary key (customer_id, order_no)
) without rowid;
create table igen_order_line (
    customer_id integer not null,
    order_no integer not null,
    line_no integer not null,
    quantity integer not null,
    product_id integer not null,
    price_cents integer not null,
    primary key (customer_id, order_no, line_no)
) without rowid;
