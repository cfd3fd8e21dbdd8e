-- `not valid` holds new rows to the reference and does not read the loaded ones again, which are right by construction
-- (crates/ironbench-data) and checked after every trial. No reference from lines to products: every line placed would
-- lock the row of a popular product.
alter table igen_order add foreign key (customer_id) references igen_customer not valid;
alter table igen_order_line add foreign key (customer_id, order_no) references igen_order on delete cascade not valid;
