-- The connections of the load create these indexes in parallel, starting with the index that takes longest.
alter table igen_order_line add primary key (customer_id, order_no, line_no);
alter table igen_order add primary key (customer_id, order_no);
alter table igen_customer add primary key (customer_id);
alter table igen_product add primary key (product_id);
alter table igen_stock add primary key (product_id, region_id);
create index igen_product_category on igen_product (category_id, product_id);
