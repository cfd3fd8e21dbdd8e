-- Loaded rows are not checked here, because the generator creates only valid references (crates/ironbench-data), and
-- because every trial ends with checks. There is no foreign key from lines to products, because every new line would
-- lock the row of a popular product.
set statement foreign_key_checks = 0 for
alter table igen_order add foreign key (customer_id) references igen_customer (customer_id);
set statement foreign_key_checks = 0 for
alter table igen_order_line add foreign key (customer_id, order_no)
references igen_order (customer_id, order_no) on delete cascade;
