-- Primary keys are created before the rows are loaded, because the tables are stored in primary key order.
create index idx_customer on customer (c_w_id, c_d_id, c_last, c_first);
create index idx_order on orders (o_w_id, o_d_id, o_c_id, o_id);
-- Only the data checks of go-tpc and ironbench use these two indexes; no transaction uses them.
create index idx_h_w_id on history (h_w_id);
create index idx_h_c_w_id on history (h_c_w_id);
