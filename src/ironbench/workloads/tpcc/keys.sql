-- Primary keys exist before the rows, because the tables are stored by them.
create index idx_customer on customer (c_w_id, c_d_id, c_last, c_first);
create index idx_order on orders (o_w_id, o_d_id, o_c_id, o_id);
