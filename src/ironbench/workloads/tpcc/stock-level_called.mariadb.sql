-- How many items of the last twenty orders of a district are low in stock; runs in the server.
call tpcc_stock_level(:w_id, :d_id, :threshold);
