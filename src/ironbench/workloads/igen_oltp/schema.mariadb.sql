-- The tables of order entry. They are stored in primary key order, and rows are loaded in this order.
-- bytes: 9000000
create table igen_region (region_id smallint primary key, name varchar(20) not null);
insert into igen_region values
    (1, 'Asia'), (2, 'Europe'), (3, 'North America'), (4, 'South America'), (5, 'Africa'), (6, 'Oceania');
create table igen_customer (
    spent_cents bigint not null,
    customer_id integer not null primary key,
    since date not null,
    region_id smallint not null,
    name varchar(100) not null,
    email varchar(200) not null,
    street varchar(100) not null,
    city varchar(100) not null
);
create table igen_product (
    product_id integer not null primary key,
    category_id integer not null,
    price_cents integer not null,
    name varchar(100) not null,
    description varchar(2000) not null
);
create table igen_stock (
    product_id integer not null,
    quantity integer not null,
    region_id smallint not null,
    primary key (product_id, region_id)
);
create table igen_order (
    total_cents bigint not null,
    placed_at datetime not null,
    customer_id integer not null,
    order_no integer not null,
    line_count smallint not null,
    status varchar(20) not null,
    primary key (customer_id, order_no)
);
create table igen_order_line (
    customer_id integer not null,
    order_no integer not null,
    product_id integer not null,
    price_cents integer not null,
    line_no smallint not null,
    quantity smallint not null,
    primary key (customer_id, order_no, line_no)
);
