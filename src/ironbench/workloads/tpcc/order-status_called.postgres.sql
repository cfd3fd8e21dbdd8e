-- A customer asks for the newest order and its lines; runs in the server.
select tpcc_order_status(:c_w_id, :c_d_id, :by_name, :c_id, :c_last);
