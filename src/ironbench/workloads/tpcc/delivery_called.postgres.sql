-- The oldest undelivered order of each district is delivered, in the server.
select tpcc_delivery(:w_id, :carrier) as delivered \gset
