-- The oldest undelivered order of each district is delivered, in the server.
call tpcc_delivery(:w_id, :carrier) \aset
