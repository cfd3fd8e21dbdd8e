-- The connections of the load create these indexes in parallel, starting with the index that takes longest.
alter table order_line add primary key (ol_w_id, ol_d_id, ol_o_id, ol_number);
alter table stock add primary key (s_w_id, s_i_id);
alter table customer add primary key (c_w_id, c_d_id, c_id);
create index idx_customer on customer (c_w_id, c_d_id, c_last, c_first);
alter table orders add primary key (o_w_id, o_d_id, o_id);
create index idx_order on orders (o_w_id, o_d_id, o_c_id, o_id);
-- Only the data checks of go-tpc and ironbench use these two indexes; no transaction uses them.
create index idx_h_w_id on history (h_w_id);
create index idx_h_c_w_id on history (h_c_w_id);
alter table new_order add primary key (no_w_id, no_d_id, no_o_id);
alter table item add primary key (i_id);
alter table district add primary key (d_w_id, d_id);
alter table warehouse add primary key (w_id);
