-- Delivers the oldest undelivered order of each district; runs in the server.
select tpcc_delivery(:w_id, :carrier) as delivered \gset
