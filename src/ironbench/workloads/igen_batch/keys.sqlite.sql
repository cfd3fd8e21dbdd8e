create index batch_history_month on batch_history (month, product_id);
