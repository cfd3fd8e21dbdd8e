-- With `not valid`, the server checks new rows but not the loaded rows, because the generator creates only valid
-- references (crates/ironbench-data), and because every trial ends with checks. There is no foreign key from lines to
-- products, because every new line would lock the row of a popular product.
alter table igen_order add foreign key (customer_id) references igen_customer not valid;
alter table igen_order_line add foreign key (customer_id, order_no) references igen_order on delete cascade not valid;
