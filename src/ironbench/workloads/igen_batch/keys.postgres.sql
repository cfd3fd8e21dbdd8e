alter table batch_product add primary key (product_id);
create index batch_history_line on batch_history (line_id);
create index batch_history_product on batch_history (product_id);
