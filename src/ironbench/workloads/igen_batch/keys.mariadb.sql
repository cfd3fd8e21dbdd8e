create index batch_history_product on batch_history (product_id);
