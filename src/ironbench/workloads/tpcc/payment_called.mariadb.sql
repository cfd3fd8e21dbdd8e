-- A customer pays; runs in the server.
call tpcc_payment(:w_id, :d_id, :c_w_id, :c_d_id, :by_name, :c_id, :c_last, :amount);
