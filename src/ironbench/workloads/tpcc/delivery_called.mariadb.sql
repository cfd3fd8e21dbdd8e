-- Delivers the oldest undelivered order of each district; runs in the server.
call tpcc_delivery(:w_id, :carrier) \aset
