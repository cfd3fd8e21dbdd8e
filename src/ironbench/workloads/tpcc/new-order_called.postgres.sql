-- A customer orders 5 to 15 items; runs in the server.
call tpcc_new_order(:w_id, :d_id, :c_id, :local, :items, :suppliers, :quantities, null);
