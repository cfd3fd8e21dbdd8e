-- All ten foreign keys of TPC-C. `not valid`: new rows are checked, but loaded rows are not read again, because the
-- generator creates only valid references (crates/ironbench-data).
alter table district add foreign key (d_w_id) references warehouse (w_id) not valid;
alter table customer add foreign key (c_w_id, c_d_id) references district (d_w_id, d_id) not valid;
alter table history add foreign key (h_c_w_id, h_c_d_id, h_c_id) references customer (c_w_id, c_d_id, c_id) not valid;
alter table history add foreign key (h_w_id, h_d_id) references district (d_w_id, d_id) not valid;
alter table orders add foreign key (o_w_id, o_d_id, o_c_id) references customer (c_w_id, c_d_id, c_id) not valid;
alter table new_order add foreign key (no_w_id, no_d_id, no_o_id) references orders (o_w_id, o_d_id, o_id) not valid;
alter table order_line add foreign key (ol_w_id, ol_d_id, ol_o_id) references orders (o_w_id, o_d_id, o_id) not valid;
alter table order_line add foreign key (ol_supply_w_id, ol_i_id) references stock (s_w_id, s_i_id) not valid;
alter table stock add foreign key (s_w_id) references warehouse (w_id) not valid;
alter table stock add foreign key (s_i_id) references item (i_id) not valid;
