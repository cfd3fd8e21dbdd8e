-- Primary keys exist before the rows, because the tables are stored by them.
create index idx_customer on customer (c_w_id, c_d_id, c_last, c_first);
create index idx_order on orders (o_w_id, o_d_id, o_c_id, o_id);
-- go-tpc and ironbench read these two when they check the data; no transaction does.
create index idx_h_w_id on history (h_w_id);
create index idx_h_c_w_id on history (h_c_w_id);
