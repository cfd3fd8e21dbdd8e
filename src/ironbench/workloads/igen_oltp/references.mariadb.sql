-- Loaded rows are not read again: they are right by construction (crates/ironbench-data) and checked after every trial.
-- No reference from lines to products: every line placed would lock the row of a popular product.
set statement foreign_key_checks = 0 for
alter table igen_order add foreign key (customer_id) references igen_customer (customer_id);
set statement foreign_key_checks = 0 for
alter table igen_order_line add foreign key (customer_id, order_no)
references igen_order (customer_id, order_no) on delete cascade;
