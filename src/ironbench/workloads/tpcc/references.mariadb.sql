-- All ten foreign keys of TPC-C. Loaded rows are not read again, because the generator creates only valid references
-- (crates/ironbench-data).
set statement foreign_key_checks = 0 for
alter table district add foreign key (d_w_id) references warehouse (w_id);
set statement foreign_key_checks = 0 for
alter table customer add foreign key (c_w_id, c_d_id) references district (d_w_id, d_id);
set statement foreign_key_checks = 0 for
alter table history add foreign key (h_c_w_id, h_c_d_id, h_c_id) references customer (c_w_id, c_d_id, c_id);
set statement foreign_key_checks = 0 for
alter table history add foreign key (h_w_id, h_d_id) references district (d_w_id, d_id);
set statement foreign_key_checks = 0 for
alter table orders add foreign key (o_w_id, o_d_id, o_c_id) references customer (c_w_id, c_d_id, c_id);
set statement foreign_key_checks = 0 for
alter table new_order add foreign key (no_w_id, no_d_id, no_o_id) references orders (o_w_id, o_d_id, o_id);
set statement foreign_key_checks = 0 for
alter table order_line add foreign key (ol_w_id, ol_d_id, ol_o_id) references orders (o_w_id, o_d_id, o_id);
set statement foreign_key_checks = 0 for
alter table order_line add foreign key (ol_supply_w_id, ol_i_id) references stock (s_w_id, s_i_id);
set statement foreign_key_checks = 0 for
alter table stock add foreign key (s_w_id) references warehouse (w_id);
set statement foreign_key_checks = 0 for
alter table stock add foreign key (s_i_id) references item (i_id);
