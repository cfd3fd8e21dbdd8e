create index igen_product_category on igen_product (category_id, product_id);
